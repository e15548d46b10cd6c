package upload

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"ferry/shared/api"
	"ferry/shared/api/param"
	"ferry/shared/blob"
	"ferry/shared/envelope"
	"ferry/shared/fault"
	"ferry/shared/files"
	"ferry/shared/identity"
	"ferry/shared/table"
	"ferry/shared/wire"
)

const (
	// maxNumbers is how many parts can be signed at once.
	maxNumbers = 100
	// signedLife is how long a part's URL is valid. It is short because S3 accepts a part even
	// after its user was disabled.
	signedLife = 15 * time.Minute
	// checksumHeader is S3's header, which Receive accepts too.
	checksumHeader = "X-Amz-Checksum-Crc64nvme"
)

// parts says where to send each of the numbered parts. It costs one call to the table, and now and
// then another to renew the quota reservation.
func (h handler) parts(
	w http.ResponseWriter,
	r *http.Request,
	u identity.Identity,
	in wire.SignParts,
) error {
	if len(in.Numbers) == 0 || len(in.Numbers) > maxNumbers {
		return fault.Parameter("numbers", "numbers must have 1 to %d part numbers", maxNumbers)
	}
	sess, err := h.session(r, u, r.PathValue("id"), true)
	if err != nil {
		return err
	}
	err = h.files.Expect(r.Context(), &sess, in.Length, slices.Max(in.Numbers))
	if err != nil {
		return err
	}
	out := make([]wire.SignedPart, 0, len(in.Numbers))
	seen, count := map[string]bool{}, h.files.Layout(sess).Count()
	for _, n := range in.Numbers {
		number := strconv.Itoa(n)
		if n < 1 || n > count || seen[number] {
			return fault.Parameter(
				"numbers",
				"the file has parts 1 to %d; ask for each only once",
				count,
			)
		}
		seen[number] = true
		s, err := h.sign(r, sess, n, in.CRC64NVME[number])
		if err != nil {
			return err
		}
		out = append(out, s)
	}
	for number, sum := range in.CRC64NVME {
		if sum == "" || !seen[number] {
			return fault.Parameter("crc64nvme", "crc64nvme names a part that is not in numbers")
		}
	}
	return envelope.WriteJSON(w, http.StatusOK, wire.SignedParts{Parts: out})
}

func (h handler) sign(
	r *http.Request,
	sess files.Session,
	number int,
	sum string,
) (out wire.SignedPart, err error) {
	value, err := parseSum(sum)
	if err != nil {
		return out, err
	}
	now := h.ports.Now()
	expires := min(now.Add(signedLife).Unix(), sess.Expires)
	life := time.Duration(expires-now.Unix()) * time.Second
	out.Number = number
	out.Size = h.files.Layout(sess).Size(number)
	out.Expires = param.Time(expires).Format(time.RFC3339)
	part, err := h.files.SignPart(r.Context(), sess, number, value, life)
	if errors.Is(err, blob.ErrUnsupported) {
		out.Method, out.Headers = http.MethodPut, map[string]string{}
		if sum != "" {
			out.Headers[checksumHeader] = sum
		}
		q := url.Values{"e": {strconv.FormatInt(expires, 10)}}
		if sess.Streamed {
			q.Set("n", strconv.FormatInt(sess.Length, 10))
		}
		q.Set("s", h.ports.Key.Part(covered(sess.ID, strconv.Itoa(number), sum, q)...))
		out.URL = fmt.Sprintf("%s/uploads/%s/parts/%d?%s",
			h.ports.Base(r.Context()), sess.ID, number, q.Encode())
		return out, nil // see Receive
	}
	if err != nil {
		return out, fmt.Errorf("signing part %d: %w", number, err)
	}
	out.Method = part.Method
	out.URL = part.URL
	out.Headers = part.Header
	return out, nil
}

// covered returns what the signature of a part's URL covers: everything that the URL says. n is
// the length of a session that began without one, if it is known.
func covered(id, number, sum string, q url.Values) []string {
	return append([]string{id, number, sum, q.Get("e")}, q["n"]...)
}

// Receive returns the handler of api.PartRoute, which takes the bytes of a part if the
// store cannot take them itself. In the cloud parts go to S3. The URL is enough; no
// login is needed.
func Receive(p *api.Ports) http.Handler {
	service := p.Files()
	return p.Outlet().Handler(func(w http.ResponseWriter, r *http.Request) error {
		q, err := param.Query(r)
		if err != nil {
			return err
		}
		id := r.PathValue("id")
		number := r.PathValue("number")
		sum := r.Header.Get(checksumHeader)
		if !p.Key.IsPart(q.Get("s"), covered(id, number, sum, q)...) {
			return fault.New(
				fault.Forbidden, "the part's URL or headers differ from those that were given out",
			)
		}
		expires, _ := strconv.ParseInt(q.Get("e"), 10, 64) // sign has written it, the number and the sum
		if table.Ended(p.Now(), expires, signedLife) {
			return fault.New(
				fault.Forbidden, "the URL of the part has expired; ask for a new one",
			)
		}
		n, _ := strconv.Atoi(number)
		value, err := parseSum(sum)
		if err != nil {
			return err
		}
		sess, err := service.Receiving(r.Context(), id)
		if err != nil {
			return err
		}
		if length, err := strconv.ParseInt(q.Get("n"), 10, 64); err == nil && sess.Length < 0 {
			sess.Length = length
		}
		leave, err := p.Slots.Take(slot(sess.By.User, r), id+"/"+number, 1)
		if err != nil {
			return err
		}
		defer leave()
		envelope.LongBody(r)
		caller := fault.CallerOf(r.Context())
		caller.Login = "session"
		caller.Accept(cmp.Or(sess.By.User, sess.Owner))
		part, err := service.WritePart(r.Context(), sess, n, r.Body, value)
		if err != nil {
			return err
		}
		w.Header().Set("ETag", fmt.Sprintf(`"%016x"`, part.Sum))
		w.Header().Set("Cache-Control", "no-store")
		return nil
	})
}
