package transcript

import (
	"errors"
	"io"
	"os"
)

// spoolBytes is how much of a stored transcript is held in memory. The rest of a longer
// one goes, with the start, to a file in the directory for temporary files.
const spoolBytes = 8 << 20

// spool is what a store has of a transcript, for reads at any place.
type spool struct {
	mem  []byte
	file *os.File // nil: all of it is in mem
	size int64
	lent bool // the file is the store's, and stays
}

func (s *spool) Write(b []byte) (int, error) {
	if s.file == nil && len(s.mem)+len(b) <= spoolBytes {
		s.mem = append(s.mem, b...)
		s.size += int64(len(b))
		return len(b), nil
	}
	if s.file == nil {
		f, err := os.CreateTemp("", "session-*.jsonl") //troupe:seam only the contents of the file matter, and it is removed
		if err != nil {
			return 0, err
		}
		s.file = f
	}
	if len(s.mem)+len(b) > spoolBytes {
		if err := s.flush(); err != nil {
			return 0, err
		}
	}
	s.mem = append(s.mem, b...)
	s.size += int64(len(b))
	return len(b), nil
}

// flush moves mem to the file.
func (s *spool) flush() error {
	if s.file == nil {
		return nil
	}
	_, err := s.file.Write(s.mem)
	s.mem = s.mem[:0]
	return err
}

// ReadAt needs a flush after the last Write.
func (s *spool) ReadAt(b []byte, off int64) (int, error) {
	if s.file != nil {
		return s.file.ReadAt(b, off)
	}
	if off >= int64(len(s.mem)) {
		return 0, io.EOF
	}
	n := copy(b, s.mem[off:])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

// Close removes the file, unless it is the store's.
func (s *spool) Close() error {
	s.mem = nil
	if s.file == nil {
		return nil
	}
	if s.lent {
		return s.file.Close()
	}
	return errors.Join(s.file.Close(), os.Remove(s.file.Name()))
}
