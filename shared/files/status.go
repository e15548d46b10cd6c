package files

// Status says whether a stored file may be given out.
type Status string

// The statuses. Nothing sets one yet, so all files are ready.
const (
	Ready   Status = ""        // nothing is stored for it
	Held    Status = "held"    // it waits for a verdict
	Refused Status = "refused" // for good
)

// Gives reports whether the links of a file in this status lead to it.
func (s Status) Gives() bool { return s == Ready }
