package bundle

// Local is local, and Tail is tail, for archives whose bytes no test can read in time.
func (e Entry) Local() []byte  { return e.local() }
func (l *Layout) Tail() []byte { return l.tail() }
