package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"ferry/shared/boot/expect"
)

// status returns a figure of a process's memory in bytes.
func status(t *testing.T, pid int, field string) (bytes int64) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Skip("the system does not tell a process's memory")
	}
	_, rest, _ := strings.Cut(string(text), field)
	_, err = fmt.Sscan(rest, &bytes)
	must(t, err)
	return bytes << 10
}

// unread returns how many bytes on their way to a port have not been read.
func unread(t *testing.T, port string) (sum int64) {
	t.Helper()
	table, err := os.ReadFile("/proc/net/tcp")
	must(t, err)
	var number int
	_, err = fmt.Sscan(port, &number)
	must(t, err)
	for line := range strings.Lines(string(table)) {
		var at, local, remote, state string
		var sending, received int64
		if _, err := fmt.Sscanf(
			line,
			"%s %s %s %s %x:%x",
			&at,
			&local,
			&remote,
			&state,
			&sending,
			&received,
		); err != nil {
			continue
		}
		if end := fmt.Sprintf(":%04X", number); strings.HasSuffix(local, end) || strings.HasSuffix(remote, end) {
			sum += sending + received
		}
	}
	return sum
}

// TestAloneStalledFormsOfAGuestTakeTheMemoryOfTheirPlaces sends forms that become bundles, with long names and all but
// the end of a large file, until no place is left for one more.
func TestAloneStalledFormsOfAGuestTakeTheMemoryOfTheirPlaces(t *testing.T) {
	expect.Alone(t)
	s := serve(t, t.TempDir(), "--inbox", "off")
	before := status(t, s.Process.Pid, "VmHWM:")
	code, text := s.do("POST", "/requests", `{"title":"files"}`)
	var request struct{ LinkURL string }
	if err := json.Unmarshal([]byte(text), &request); code != 201 || err != nil {
		t.Fatalf("status %d, %v: %s", code, err, text)
	}
	_, path, _ := strings.Cut(request.LinkURL, "/v1")
	const part = "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"%d %s\"\r\n\r\n"
	var form strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&form, part+"\r\n", i, strings.Repeat("x", 150))
	}
	fmt.Fprintf(&form, part, 5000, "")
	form.WriteString(strings.Repeat("x", 4<<20-1))
	const places = 500 / 4
	var forms []net.Conn
	for len(forms) < places {
		conn, err := net.Dial("tcp", s.addr)
		must(t, err)
		defer conn.Close()
		must(t, conn.SetDeadline(time.Now().Add(10*time.Minute)))
		fmt.Fprintf(
			conn,
			"POST /v1%s&bundle=a.zip HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/form-data; boundary=b\r\n"+
				"Content-Length: %d\r\nExpect: 100-continue\r\n\r\n",
			path,
			form.Len()+100,
		)
		line, err := bufio.NewReader(conn).ReadString('\n')
		must(t, err)
		if !strings.Contains(line, " 100 ") {
			if !strings.Contains(line, " 429 ") {
				t.Fatalf("a form is answered with %q", line)
			}
			break
		}
		forms = append(forms, conn)
	}
	for _, conn := range forms {
		_, err := io.WriteString(conn, form.String())
		must(t, err)
	}
	_, port, _ := net.SplitHostPort(s.addr)
	eventually(t, s.errs, func() bool { return unread(t, port) == 0 })
	// What is no longer used is collected only at times.
	took, most := status(t, s.Process.Pid, "VmHWM:")-before, int64(2*places*512<<10)
	t.Logf("%d forms take %d MiB", len(forms), took>>20)
	if len(forms) == 0 || took > most {
		t.Errorf("%d stalled forms take %d MiB, but %d places %d MiB at most", len(forms), took>>20, places, most>>20)
	}
}
