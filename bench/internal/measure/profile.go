package measure

import (
	"errors"
	"os"
	"runtime"
	"runtime/pprof"
)

// CPUProfile starts a profile, unless file is empty, and returns what ends it.
func CPUProfile(file string) (stop func() error, err error) {
	if file == "" {
		return func() error { return nil }, nil
	}
	f, err := os.Create(file)
	if err != nil {
		return nil, err
	}
	stop = func() error {
		pprof.StopCPUProfile()
		return f.Close()
	}
	return stop, pprof.StartCPUProfile(f)
}

// HeapProfile returns what writes a profile of the heap to file; nil if file is
// empty. It must be called before anything is allocated that should be seen.
func HeapProfile(file string) func() error {
	if file == "" {
		return nil
	}
	runtime.MemProfileRate = 512
	return func() error {
		f, err := os.Create(file)
		if err != nil {
			return err
		}
		return errors.Join(pprof.WriteHeapProfile(f), f.Close())
	}
}
