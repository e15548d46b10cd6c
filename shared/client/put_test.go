package client_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/minio/crc64nvme"

	"ferry/shared/boot/apitest"
	"ferry/shared/boot/expect"
	"ferry/shared/boot/local"
	"ferry/shared/client"
	"ferry/shared/service"
	"ferry/shared/wire"
)

// partSize is the smallest that the service accepts.
const partSize = 5 << 20

func source(content []byte) client.Source {
	return client.Source{
		Name:    "big.bin",
		Type:    "application/x-big",
		Length:  int64(len(content)),
		Content: bytes.NewReader(content),
	}
}

// wantStored checks that a file has arrived as it was sent.
func wantStored(t *testing.T, c *client.Client, f client.File, content []byte) {
	t.Helper()
	d, err := c.File(t.Context(), client.UserArea, f.ID)
	if err != nil ||
		d.Name != "big.bin" ||
		d.Type != "application/x-big" ||
		d.CRC64NVME != wire.CRC64Text(crc64nvme.Checksum(content)) {
		t.Errorf("%+v, %v", d, err)
	}
	var got bytes.Buffer
	if _, err := c.Copy(t.Context(), f.Link, &got, client.Verify{CRC64NVME: d.CRC64NVME}); err != nil ||
		!bytes.Equal(got.Bytes(), content) {
		t.Errorf("got %d of %d bytes back, or they differ: %v", got.Len(), len(content), err)
	}
}

// wantNoSessions checks that none is left.
func wantNoSessions(t *testing.T, c *client.Client) {
	t.Helper()
	for s, err := range c.Sessions(t.Context()) {
		t.Errorf("a session is left: %+v, %v", s, err)
	}
}

// TestAnUploadInPartsSurvivesCutConnections by trying again, or as further uploads resume its session.
func TestAnUploadInPartsSurvivesCutConnections(t *testing.T) {
	t.Parallel()
	s, whole := start(t)
	content := bytesOf(1, 3*partSize+12345)
	for _, tries := range []int{40, 1} {
		cut := cutter(6<<20, 30)
		c := connect(t, s, "ann", func(o *client.Options) { o.HTTP, o.Retry.Tries = cut.client(), tries })
		var sent atomic.Int64
		sessions := map[string]bool{}
		put := func() (client.File, error) {
			sent.Store(0)
			return c.Put(t.Context(), source(content), client.PutOptions{
				PartSize: partSize, Connections: 3, Key: fmt.Sprint("key", tries), Progress: func(n int64) {
					sent.Add(n)
				},
				Began: func(s client.Session) error { sessions[s.ID] = true; return nil },
			})
		}
		f, err := put()
		for tries == 1 && client.IsNetwork(err) {
			f, err = put()
		}
		if err != nil || cut.cuts < 3 || len(sessions) != 1 || sent.Load() != int64(len(content)) {
			t.Fatalf("after %d cuts %v sessions, and the progress ends at %d: %v", cut.cuts, sessions, sent.Load(), err)
		}
		wantStored(t, whole, f, content)
		wantNoSessions(t, whole)
	}
}

func TestArrivedPartsAreNotSentAgain(t *testing.T) {
	t.Parallel()
	_, c := start(t)
	content := bytesOf(3, 4*partSize)
	session := stopAfter(t, c, source(content), 2*partSize)
	st, err := c.Status(t.Context(), session)
	if err != nil || len(st.Arrived) < 2 || st.State != "open" || st.Parts != 4 {
		t.Fatalf("%+v, %v", st, err)
	}
	var sent reading
	var had, moved atomic.Int64
	sent.ReaderAt = bytes.NewReader(content)
	f, err := c.Put(t.Context(), client.Source{
		Name:    "big.bin",
		Length:  int64(len(content)),
		Content: &sent,
	}, client.PutOptions{
		Session: session, Had: func(n int64) { had.Add(n) }, Progress: func(n int64) { moved.Add(n) },
	})
	if err != nil || f.ID != st.FileID() {
		t.Fatalf("%+v, %v", f, err)
	}
	// A part that was under way when its client stopped may have arrived after all.
	if least := int64(len(st.Arrived)) * partSize; had.Load() < least ||
		had.Load()+moved.Load() != int64(len(content)) {
		t.Errorf("%d bytes were there and %d sent, want at least %d of %d there",
			had.Load(), moved.Load(), least, len(content))
	}
	// Everything is read for the checksums, and missing parts once more.
	if most := int64(len(content) + 2*partSize); sent.n.Load() > most {
		t.Errorf("%d bytes were read, want at most %d", sent.n.Load(), most)
	}
}

// reading counts what is read.
type reading struct {
	io.ReaderAt
	n atomic.Int64
}

func (r *reading) ReadAt(b []byte, at int64) (int, error) {
	n, err := r.ReaderAt.ReadAt(b, at)
	r.n.Add(int64(n))
	return n, err
}

// stopAfter ends an upload when some bytes of it have gone, and returns its session.
func stopAfter(t *testing.T, c *client.Client, src client.Source, after int64) (session string) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var gone atomic.Int64
	_, err := c.Put(ctx, src, client.PutOptions{
		PartSize: partSize, Connections: 1, Began: func(s client.Session) error { session = s.ID; return nil },
		Progress: func(n int64) {
			if gone.Add(n) > after {
				stop()
			}
		},
	})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("an upload that was stopped: %v", err)
	}
	return session
}

func TestFileChangedBeforeAResumeIsSentAsItIsNow(t *testing.T) {
	t.Parallel()
	_, c := start(t)
	content := bytesOf(4, 3*partSize)
	session := stopAfter(t, c, source(content), 2*partSize)
	content[0]++
	f, err := c.Put(t.Context(), source(content), client.PutOptions{Session: session})
	must(t, err)
	wantStored(t, c, f, content)
}

// TestUploadResumesWhenItsObjectIsCompleteButNoFileYet: the service was stopped in
// between, or the client while it waited for a long comparison.
func TestUploadResumesWhenItsObjectIsCompleteButNoFileYet(t *testing.T) {
	t.Parallel()
	s, whole := start(t)
	content := bytesOf(9, 2*partSize+1)
	first := connect(t, s, "ann", func(o *client.Options) { o.Retry.Tries = 1 })
	session := ""
	_, err := first.Put(t.Context(), source(content), client.PutOptions{
		PartSize: partSize,
		Began: func(begun client.Session) error {
			session = begun.ID
			s.Calls.Before("table.Write", func() error { return io.ErrUnexpectedEOF }) // the next write is that of the record
			return nil
		},
	})
	if s.Calls.Before("table.Write", nil); client.StatusOf(err) != 500 {
		t.Fatalf("the first Put ended with %v", err)
	}
	var sent int64
	f, err := whole.Put(t.Context(), source(content), client.PutOptions{
		Connections: 1,
		Session:     session,
		Progress:    func(n int64) { sent += n },
	})
	if err != nil || sent != int64(len(content)) {
		t.Fatalf("the progress ends at %d of %d bytes, %v", sent, len(content), err)
	}
	wantStored(t, whole, f, content)
	wantNoSessions(t, whole)
}

func TestNewSessionReplacesOneThatEndedOrIsOfAnotherLength(t *testing.T) {
	t.Parallel()
	_, c := start(t)
	for _, length := range []int{partSize + 1, partSize - 1} {
		content := bytesOf(5, partSize+1)
		id := stopAfter(t, c, source(content), partSize)
		if length == len(content) {
			must(t, c.Abort(t.Context(), id))
		}
		f, err := c.Put(t.Context(), source(content[:length]), client.PutOptions{Session: id, PartSize: partSize})
		must(t, err)
		wantStored(t, c, f, content[:length])
	}
}

// crashed ends an upload with the key "one" when its session has begun.
func crashed(t *testing.T, c *client.Client, content []byte) (session string) {
	t.Helper()
	crash := errors.New("the machine stops")
	_, err := c.Put(t.Context(), source(content), client.PutOptions{Key: "one", Began: func(s client.Session) error {
		session = s.ID
		return crash
	}})
	if !errors.Is(err, crash) {
		t.Fatal(err)
	}
	return session
}

func TestUploadWithTheSameKeyFindsItsSessionAfterACrash(t *testing.T) {
	t.Parallel()
	_, c := start(t)
	content := bytesOf(6, partSize+1)
	first, second := crashed(t, c, content), ""
	f, err := c.Put(t.Context(), source(content), client.PutOptions{
		Key:   "one",
		Began: func(s client.Session) error { second = s.ID; return nil },
	})
	if err != nil || first != second {
		t.Fatalf("sessions %s and %s: %v", first, second, err)
	}
	again, err := c.Put(t.Context(), source(content), client.PutOptions{Key: "one"}) // the answer of complete was lost
	if err != nil || again.ID != f.ID {
		t.Errorf("%+v, then %+v, %v", f, again, err)
	}
}

func TestKeyOfAnEndedSessionCanBeUsedAgain(t *testing.T) {
	t.Parallel()
	_, c := start(t)
	content := bytesOf(6, partSize+1)
	must(t, c.Abort(t.Context(), crashed(t, c, content))) // from elsewhere
	f, err := c.Put(t.Context(), source(content), client.PutOptions{Key: "one"})
	must(t, err)
	wantStored(t, c, f, content)
}

// restless returns other bytes on every read.
type restless struct{ n atomic.Int64 }

func (r *restless) ReadAt(b []byte, _ int64) (int, error) {
	for i := range b {
		b[i] = byte(r.n.Add(1) % 251)
	}
	return len(b), nil
}

// shrinking returns all its bytes for the checksum, and none after that.
type shrinking struct{ read atomic.Int64 }

func (s *shrinking) ReadAt(b []byte, _ int64) (int, error) {
	if s.read.Add(int64(len(b))) > partSize {
		return 0, io.EOF
	}
	return len(b), nil
}

func TestFileThatChangesDuringUploadIsNotStored(t *testing.T) {
	t.Parallel()
	var tries atomic.Int64
	_, c := start(t, func(o *client.Options) {
		o.Retry.Told = func(err error, _ time.Duration) {
			if client.IsNetwork(err) {
				tries.Add(1)
			}
		}
	})
	for what, src := range map[string]client.Source{
		"other bytes each time":    {Name: "a", Length: partSize, Content: &restless{}},
		"shorter than it was":      {Name: "a", Length: partSize, Content: bytes.NewReader(make([]byte, partSize-1))},
		"shorter while it is sent": {Name: "a", Length: partSize, Content: &shrinking{}},
		"changed at the end": {
			Name:    "a",
			Length:  partSize,
			Content: bytes.NewReader(make([]byte, partSize)),
			Check: func() error {
				return client.ErrChanged
			},
		},
	} {
		expect.Err(t, what, failed(c.Put(t.Context(), src, client.PutOptions{})), client.ErrChanged)
	}
	if tries.Load() > 0 {
		t.Error("the network was blamed")
	}
	expect.Err(t, "something was stored", failed(c.Named(t.Context(), client.UserArea, "a", 1)), client.ErrNotFound)
}

func TestLoginThatExpiresDuringUploadIsRenewed(t *testing.T) {
	t.Parallel()
	s, c := start(t)
	content := bytesOf(7, 2*partSize)
	var once sync.Once
	f, err := c.Put(t.Context(), source(content), client.PutOptions{
		PartSize:    partSize,
		Connections: 1,
		Progress: func(int64) {
			once.Do(func() { s.Clock.Advance(2 * time.Hour) }) // the address of the part in progress expires too
		},
	})
	must(t, err)
	wantStored(t, c, f, content)
}

func TestTwoResumesOfOneUploadMakeOneFile(t *testing.T) {
	t.Parallel()
	_, c := start(t)
	content := bytesOf(8, 3*partSize)
	session := stopAfter(t, c, source(content), partSize)
	var ids [2]int64
	var both sync.WaitGroup
	for i := range ids {
		both.Go(func() {
			f, err := c.Put(t.Context(), source(content), client.PutOptions{Session: session})
			if err != nil {
				t.Error(err)
			}
			ids[i] = f.ID
		})
	}
	both.Wait()
	if ids[0] != ids[1] {
		t.Errorf("two files were made: %v", ids)
	}
}

func TestFileOfAnySizeGoesToAnotherUser(t *testing.T) {
	t.Parallel()
	s, c := start(t)
	s.AddUser("bob", password)
	for _, n := range []int{0, 1, partSize} {
		content := bytesOf(9, n)
		f, err := c.Put(t.Context(), source(content), client.PutOptions{Delivery: client.Delivery{
			To:      "bob",
			Mail:    []string{"bob@example.com"},
			Message: "for you",
		}})
		must(t, err)
		wantStored(t, connect(t, s, "bob"), f, content)
	}
	for message, fails := range map[string]bool{"caf\xe9": true, `\ufffd \\ufffd`: false} {
		_, err := c.Put(t.Context(), source(nil), client.PutOptions{Delivery: client.Delivery{
			To:      "bob",
			Mail:    []string{"bob@example.com"},
			Message: message,
		}})
		if (err != nil) != fails {
			t.Errorf("a message of %q: %v", message, err)
		}
	}
	if sent := s.Deliver(); sent != 4 {
		t.Errorf("%d messages were sent, want 4", sent)
	}
}

// TestAnAddressThatOnlyTheServiceNamesIsToldAsSuch sends parts to the public URL of a
// service, where nobody listens. Another failure of the network says nothing of it.
func TestAnAddressThatOnlyTheServiceNamesIsToldAsSuch(t *testing.T) {
	t.Parallel()
	away := func(s *service.Settings, _ *local.ServiceOptions) { s.PublicURL = "http://127.0.0.1:1/v1" }
	for want, options := range map[string][]apitest.Option{
		"the address http://127.0.0.1:1, where the service wants parts sent (its public URL; " +
			"its operator sets FERRY_PUBLIC_URL), cannot be reached: connection refused": {away},
		" cannot be reached: the line was cut": nil,
	} {
		s := apitest.New(t, options...)
		s.AddUser("ann", password)
		o := client.Options{URL: s.Root, User: "ann", Password: password, Retry: client.Retry{Tries: 1}}
		if options == nil {
			o.HTTP = cutter(1<<20, 1<<30).client()
		}
		_, err := newClient(t, o).Put(t.Context(), source(bytesOf(1, partSize)), client.PutOptions{PartSize: partSize})
		if !client.IsNetwork(err) || strings.TrimPrefix(err.Error(), s.HTTP.Listener.Addr().String()) != want {
			t.Errorf("%v\nwant %s", err, want)
		}
	}
}
