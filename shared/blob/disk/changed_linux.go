package disk

import (
	"syscall"
	"time"
)

func changed(stat *syscall.Stat_t) time.Time { return time.Unix(stat.Ctim.Unix()) }
