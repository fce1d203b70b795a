package embedded

import (
	"fmt"
	"os"
	"sync"
)

const (
	maxKept   = 16 << 20 // bytes of an output in memory
	maxOnDisk = 64 << 20 // and in a file
)

// output is what a command prints: in memory while it runs in the foreground, in a file in
// the background. Output beyond its limit is dropped, and the command is not held up.
type output struct {
	mu   sync.Mutex
	b    []byte // its beginning; nil once it is in a file
	file *os.File
	size int64
	full bool
}

// Write implements [io.Writer]. It never fails: a command whose output cannot be kept still runs to its end.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.size += int64(len(p))
	if o.file == nil {
		o.b = append(o.b, p[:min(len(p), maxKept-len(o.b))]...)
		return len(p), nil
	}
	o.store(p)
	return len(p), nil
}

func (o *output) store(p []byte) {
	if o.full {
		return
	}
	before := o.size - int64(len(p))
	if o.size > maxOnDisk {
		p = p[:max(maxOnDisk-before, 0)]
		o.full = true
	}
	_, err := o.file.Write(p)
	if o.full = o.full || err != nil; o.full {
		_, _ = fmt.Fprintf(o.file, "\n[The output is over %s. The rest of it is not kept.]\n", sizeOf(maxOnDisk)) // as much as fits
	}
}

// spill writes what there is to a new file, and then what comes. It returns what there is.
func (o *output) spill(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, err := f.Write(o.b); err != nil {
		_ = f.Close()
		return nil, err
	}
	before := o.b
	if o.size > int64(len(before)) {
		_, _ = fmt.Fprintf(f, "\n[%s of output are not kept.]\n", sizeOf(int(o.size)-len(before))) // as much as fits
	}
	o.file, o.b, o.size = f, nil, int64(len(before))
	return before, nil
}

// bytes are those in memory.
func (o *output) bytes() []byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b
}

// length is how many bytes came, kept or not.
func (o *output) length() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.size
}

// close closes the file. Later writes are lost.
func (o *output) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.file != nil {
		_ = o.file.Close() // nothing can be done about it
		o.full = true
	}
}
