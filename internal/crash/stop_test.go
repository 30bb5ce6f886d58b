//go:build unix

package crash

import "time"

const stopLease = time.Second

func stopped(*process) {}
