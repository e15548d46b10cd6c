package cli

import (
	"bytes"
	"testing"
	"time"
)

func TestProgressFitsOnOneLine(t *testing.T) {
	t.Parallel()
	at := time.Unix(0, 0)
	var out bytes.Buffer
	m := &Meter{out: Screen{Raw: &out}, terminal: true, columns: 90, now: func() time.Time { return at }}
	m.Begin("big\x1b.iso", 4_000_000_000)
	m.Expect(4_000_000_000)
	for _, k := range []struct {
		after time.Duration
		more  int64
		want  string
	}{
		{want: "big\uFFFD.iso [                        ] 0% of 4.0 GB"},
		{
			after: time.Second,
			more:  40_000_000,
			want:  "big\uFFFD.iso [                        ] 1% of 4.0 GB, 40.0 MB/s, 1:39 left",
		},
		{
			after: time.Second,
			more:  1_960_000_000,
			want:  "big\uFFFD.iso [============            ] 50% of 4.0 GB, 1.0 GB/s, 0:02 left",
		},
		{
			after: time.Second,
			more:  -500_000_000,
			want:  "big\uFFFD.iso [=========               ] 37% of 4.0 GB, 500 MB/s, 0:05 left",
		},
		{
			after: time.Second,
			more:  2_500_000_000,
			want:  "big\uFFFD.iso [========================] 100% of 4.0 GB, 1.0 GB/s",
		},
	} {
		at = at.Add(k.after)
		m.Add(k.more)
		out.Reset()
		m.show()
		if want := "\r" + k.want + "\x1b[K"; out.String() != want {
			t.Errorf("%q, want %q", out.String(), want)
		}
	}
	m.columns = 30
	out.Reset()
	m.show()
	if n := len([]rune(out.String())) - len("\r\x1b[K"); n > 29 {
		t.Errorf("the bar takes %d columns of 30", n)
	}
	m.terminal = false
	out.Reset()
	m.show()
	if want := "big\uFFFD.iso: 100% of 4.0 GB, 1.0 GB/s\n"; out.String() != want {
		t.Errorf("a line is %q, want %q", out.String(), want)
	}
}

func TestSeveralFilesShowTheirTotalAndTheOneUnderWay(t *testing.T) {
	t.Parallel()
	for what, k := range map[string]struct {
		terminal, growing bool
		bytes             int64
		want              string
	}{
		"a large one": {
			terminal: true,
			bytes:    2_000_000_000,
			want:     "\r1 of 3 files [============            ] 50% of 4.0 GB\x1b[K\n  50% of 2.0 GB  big.iso\x1b[K\x1b[1A",
		},
		"small ones at once": {
			terminal: true,
			want:     "\r1 of 3 files [============            ] 50% of 4.0 GB\x1b[K\n  big.iso\x1b[K\x1b[1A",
		},
		"no total": {
			terminal: true,
			growing:  true,
			bytes:    2_000_000_000,
			want:     "\r1 of 3 files: 2.0 GB\x1b[K\n  50% of 2.0 GB  big.iso\x1b[K\x1b[1A",
		},
		"without a terminal":     {bytes: 2_000_000_000, want: "1 of 3 files: 50% of 4.0 GB; 50% of 2.0 GB  big.iso\n"},
		"neither nor a terminal": {growing: true, want: "1 of 3 files: 2.0 GB; big.iso\n"},
	} {
		var out bytes.Buffer
		m := &Meter{out: Screen{Raw: &out}, terminal: k.terminal, columns: 90, now: time.Now, Growing: k.growing}
		m.Files.Store(3)
		m.Expect(4_000_000_000)
		m.Add(1_000_000_000)
		m.Ended.Add(1)
		m.Begin("big.iso", k.bytes)
		m.Add(1_000_000_000)
		m.show()
		if out.String() != k.want {
			t.Errorf("%s: %q, want %q", what, out.String(), k.want)
		}
		out.Reset()
		if m.Say("done"); k.terminal != (out.String() == "\r\x1b[Jdone\n") {
			t.Errorf("%s: a line beside it is %q", what, out.String())
		}
	}
}

// TestRateIsThatOfThisRun resumes a transfer of 4 GB of which 3 GB were there.
func TestRateIsThatOfThisRun(t *testing.T) {
	t.Parallel()
	at := time.Unix(0, 0)
	var out bytes.Buffer
	m := &Meter{out: Screen{Raw: &out}, now: func() time.Time { return at }}
	m.Begin("big", 0)
	m.Expect(4_000_000_000)
	m.show()
	m.Had(3_000_000_000)
	at = at.Add(time.Second)
	m.Add(100_000_000)
	out.Reset()
	m.show()
	if want := "big: 77% of 4.0 GB, 100 MB/s, 0:09 left\n"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
	for want, got := range map[string]string{
		"4.0 GB, 1.0 GB of it now in 0:10, 100 MB/s": took(
			4e9,
			1e9,
			10*time.Second,
		), "4.0 GB in 0:10, 400 MB/s": took(4e9, 4e9, 10*time.Second),
		"4.0 GB": took(4e9, 0, 0),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestSizesAndTimesAreRounded(t *testing.T) {
	t.Parallel()
	if got := Count(0, "file") + Count(1, "file") + Count(2, "file"); got != "0 files1 file2 files" {
		t.Error(got)
	}
	for n, want := range map[int64]string{
		0:                  "0 B",
		999:                "999 B",
		1000:               "1.0 kB",
		99_949:             "99.9 kB",
		99_950:             "100 kB",
		999_499:            "999 kB",
		999_500:            "1.0 MB",
		53_687_091_200_000: "53.7 TB",
	} {
		if got := Size(n); got != want {
			t.Errorf("%d is %q, want %q", n, got, want)
		}
	}
	for d, want := range map[time.Duration]string{
		0:                           "0:00",
		65 * time.Second:            "1:05",
		2*time.Hour + 3*time.Minute: "2:03:00",
		240 * time.Hour:             "10 days",
	} {
		if got := span(d); got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
}
