//go:build !unix

package measure

import "time"

// CPU is 0: this system does not report it.
func CPU() time.Duration { return 0 }
