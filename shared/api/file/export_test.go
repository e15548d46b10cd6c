package file

import "net/http"

var RangeBytes = rangeBytes

func MadeByRobot(r *http.Request) bool { return askerOf(r) != person }
