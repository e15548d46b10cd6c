package lambdahost

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// instance is one process of a function, with a runtime API of its own.
type instance struct {
	function Function
	command  *exec.Cmd
	api      *http.Server
	polled   chan struct{} // closed at the first poll
	exited   chan struct{} // closed when the process has ended
	next     chan *invocation

	mu      sync.Mutex
	current *invocation
	initErr []byte
}

// invocation is one event under way.
type invocation struct {
	id       string
	event    []byte
	deadline time.Time
	answered chan answer
}

type answer struct {
	payload []byte
	failed  string
}

// start starts a process and waits until it polls for its first event.
func start(ctx context.Context, f Function) (*instance, time.Duration, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, 0, err
	}
	i := &instance{function: f, polled: make(chan struct{}), exited: make(chan struct{}), next: make(chan *invocation)}
	i.api = &http.Server{Handler: i.handler(), ReadHeaderTimeout: 10 * time.Second}
	go i.api.Serve(l) // until end
	i.command = exec.Command(f.Program)
	i.command.Env = environment(f, l.Addr().String())
	i.command.Stdout, i.command.Stderr = f.Log, f.Log
	i.command.WaitDelay = time.Second
	began := time.Now()
	if err := i.command.Start(); err != nil {
		return nil, 0, errors.Join(err, i.api.Close())
	}
	go func() {
		_ = i.command.Wait() // how it ended is told by what it left undone
		close(i.exited)
	}()
	timeout := time.NewTimer(initTimeout)
	defer timeout.Stop()
	select {
	case <-i.polled:
		return i, time.Since(began), nil
	case <-i.exited:
		err = fmt.Errorf("it ended before its first poll: %s %s", i.command.ProcessState, i.initError())
	case <-timeout.C:
		err = fmt.Errorf("it does not poll within %s", initTimeout)
	case <-ctx.Done():
		err = ctx.Err()
	}
	i.end()
	return nil, 0, err
}

func (i *instance) initError() []byte {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.initErr
}

// environment is what Lambda gives a function, and nothing of this process.
func environment(f Function, api string) []string {
	all := map[string]string{
		"AWS_LAMBDA_RUNTIME_API":          api,
		"AWS_LAMBDA_FUNCTION_NAME":        f.Name,
		"AWS_LAMBDA_FUNCTION_MEMORY_SIZE": strconv.Itoa(f.Memory),
		"AWS_LAMBDA_FUNCTION_VERSION":     "$LATEST",
		"AWS_EXECUTION_ENV":               "AWS_Lambda_provided.al2023",
		"_HANDLER":                        "bootstrap",
		"TZ":                              ":UTC",
	}
	maps.Copy(all, f.Environment)
	var list []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		list = append(list, name+"="+all[name])
	}
	return list
}

// end kills the process, if it still runs, and frees what it used.
func (i *instance) end() {
	_ = i.command.Process.Kill() // it may have ended
	<-i.exited
	_ = i.api.Close()
}

func (i *instance) ended() bool {
	select {
	case <-i.exited:
		return true
	default:
		return false
	}
}

// invoke sends one event to a process that waits for one. A process that takes
// too long is killed.
func (i *instance) invoke(ctx context.Context, id string, event []byte, timeout time.Duration) (r Result) {
	if timeout <= 0 {
		timeout = 15 * time.Minute
	}
	began := time.Now()
	v := &invocation{id: id, event: event, deadline: began.Add(timeout), answered: make(chan answer, 1)}
	i.mu.Lock()
	i.current = v
	i.mu.Unlock()
	late := time.NewTimer(timeout)
	defer late.Stop()
	select {
	case i.next <- v:
	case <-i.exited:
	case <-ctx.Done():
	}
	var a answer
	select {
	case a = <-v.answered:
	case <-i.exited:
		a = failure("Runtime.ExitError", fmt.Sprintf("the process ended: %s", i.command.ProcessState))
	case <-late.C:
		a = failure("Sandbox.Timedout", fmt.Sprintf("Task timed out after %.2f seconds", timeout.Seconds()))
		i.end()
	case <-ctx.Done():
		a = failure("Canceled", ctx.Err().Error())
		i.end()
	}
	if len(a.payload) > MaxPayload {
		a = failure("Function.ResponseSizeTooLarge", fmt.Sprintf("the answer has %d bytes, more than %d", len(a.payload), MaxPayload))
	}
	return Result{Payload: a.payload, Failed: a.failed, Took: time.Since(began), Peak: i.peak()}
}

func failure(kind, message string) answer {
	text, _ := json.Marshal(map[string]string{"errorType": kind, "errorMessage": message}) // strings always can be
	return answer{text, kind}
}

// peak reads the most memory that the process has used, where the system says.
func (i *instance) peak() int64 {
	if i.ended() {
		return 0
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", i.command.Process.Pid))
	if err != nil {
		return 0
	}
	_, rest, _ := bytes.Cut(status, []byte("VmHWM:"))
	fields := strings.Fields(string(rest))
	if len(fields) < 2 {
		return 0
	}
	kib, _ := strconv.ParseInt(fields[0], 10, 64) // 0 if it is not told
	return kib << 10
}

// handler is the runtime API.
func (i *instance) handler() http.Handler {
	mux := http.NewServeMux()
	const prefix = "/2018-06-01/runtime/"
	first := sync.OnceFunc(func() { close(i.polled) })
	mux.HandleFunc("GET "+prefix+"invocation/next", func(w http.ResponseWriter, r *http.Request) {
		first()
		select {
		case v := <-i.next:
			h := w.Header()
			h.Set("Content-Type", "application/json")
			h.Set("Lambda-Runtime-Aws-Request-Id", v.id)
			h.Set("Lambda-Runtime-Deadline-Ms", strconv.FormatInt(v.deadline.UnixMilli(), 10))
			h.Set("Lambda-Runtime-Invoked-Function-Arn", "arn:aws:lambda:us-east-1:123456789012:function:"+i.function.Name)
			h.Set("Lambda-Runtime-Trace-Id", "Root=1-00000000-000000000000000000000000;Sampled=0")
			_, _ = w.Write(v.event) // a process that has gone is noticed by its end
		case <-r.Context().Done():
		}
	})
	mux.HandleFunc("POST "+prefix+"invocation/{id}/response", func(w http.ResponseWriter, r *http.Request) {
		i.answer(w, r, "")
	})
	mux.HandleFunc("POST "+prefix+"invocation/{id}/error", func(w http.ResponseWriter, r *http.Request) {
		kind := r.Header.Get("Lambda-Runtime-Function-Error-Type")
		if kind == "" {
			kind = "Unhandled"
		}
		i.answer(w, r, kind)
	})
	mux.HandleFunc("POST "+prefix+"init/error", func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(io.LimitReader(r.Body, 64<<10)) // as much as came
		i.mu.Lock()
		i.initErr = text
		i.mu.Unlock()
		w.WriteHeader(http.StatusAccepted)
	})
	return mux
}

// answer takes the answer to the event under way; others are refused.
func (i *instance) answer(w http.ResponseWriter, r *http.Request, failed string) {
	payload, err := io.ReadAll(io.LimitReader(r.Body, MaxPayload+1))
	i.mu.Lock()
	v := i.current
	ours := err == nil && v != nil && v.id == r.PathValue("id")
	if ours {
		i.current = nil
	}
	i.mu.Unlock()
	switch {
	case !ours:
		w.WriteHeader(http.StatusBadRequest)
	case len(payload) > MaxPayload:
		_, _ = io.Copy(io.Discard, r.Body) // the function waits until all is taken
		w.WriteHeader(http.StatusRequestEntityTooLarge)
		v.answered <- answer{payload, failed}
	default:
		w.WriteHeader(http.StatusAccepted)
		v.answered <- answer{payload, failed}
	}
}
