package command

import (
	"fmt"
	"math"
	goruntime "runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/agent-troupe/troupe/agent/embedded"
	"github.com/agent-troupe/troupe/agent/embedded/demo"
	"github.com/agent-troupe/troupe/runtime"
)

// defaultStarts is how many agent programs start in a second. The runtime begins with a
// quarter of it: each agent makes many requests, and the first ones show whether the API
// and the machine take more.
const defaultStarts = 8

func admissionFlags() []flagSpec {
	return []flagSpec{
		{name: "starts-per-second", arg: "N", help: "the most agents that start in a second; the first ones start more slowly, from a quarter of it on; 0: no limit; default: 8, and no limit for an agent that is no program of this machine", set: func(s *settings, v string) error {
			n, err := strconv.ParseFloat(v, 64)
			if err != nil || !(n >= 0) || math.IsInf(n, 0) {
				return fmt.Errorf("%q is not a number from 0", v)
			}
			s.batch.admission.StartsPerSecond = n
			return nil
		}},
		{name: "max-memory", arg: "SIZE", help: "starts no more agents while all of them have this much memory, such as 8G; a new one counts as 400M (Linux)", set: size(func(s *settings) *int64 { return &s.batch.admission.MaxMemory })},
		{name: "min-free-disk", arg: "SIZE", help: "starts no more agents while less than this is free on the disk of --out, such as 20G (Linux)", set: size(func(s *settings) *int64 { return &s.batch.admission.MinFreeDisk })},
	}
}

// admit returns the limits of the runtime.
func (s *settings) admit() (runtime.Admission, error) {
	a := s.batch.admission
	if (a.MaxMemory > 0 || a.MinFreeDisk > 0) && goruntime.GOOS != "linux" {
		return a, &usageError{"--max-memory and --min-free-disk work on Linux only", "leave them out"}
	}
	if !s.gave("starts-per-second") && !slices.Contains([]string{nameScripted, embedded.Name, demo.Name}, s.agent) && !s.inCloud() {
		a.StartsPerSecond = defaultStarts
	}
	a.DiskDir = s.batch.job.Out
	return a, nil
}

// size takes bytes, or K, M, G or T of them, in powers of 1024.
func size(field func(*settings) *int64) setting {
	return func(s *settings, v string) error {
		digits := strings.TrimSuffix(strings.TrimSuffix(strings.ToUpper(v), "B"), "I")
		unit := int64(1)
		if n := len(digits); n > 0 {
			if at := strings.IndexByte("KMGT", digits[n-1]); at >= 0 {
				digits, unit = digits[:n-1], 1024<<(10*at)
			}
		}
		n, err := strconv.ParseInt(digits, 10, 64)
		if err != nil || n < 1 || n > math.MaxInt64/unit {
			return fmt.Errorf("%q is not a size; write 512M or 8G", v)
		}
		*field(s) = n * unit
		return nil
	}
}
