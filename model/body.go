package model

import "io"

// joined is the body of a request in parts, none of which is copied. An [io.MultiReader]
// would take a buffer of 32 KB for each request.
type joined struct {
	parts [][]byte
	off   int // of the first part
}

// Read implements [io.Reader].
func (j *joined) Read(b []byte) (n int, err error) {
	for len(j.parts) > 0 {
		k := copy(b[n:], j.parts[0][j.off:])
		n += k
		if j.off += k; j.off < len(j.parts[0]) {
			return n, nil // b is full
		}
		j.parts, j.off = j.parts[1:], 0
	}
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

// WriteTo implements [io.WriterTo].
func (j *joined) WriteTo(w io.Writer) (n int64, err error) {
	for len(j.parts) > 0 {
		k, err := w.Write(j.parts[0][j.off:])
		n += int64(k)
		if err != nil {
			j.off += k
			return n, err
		}
		j.parts, j.off = j.parts[1:], 0
	}
	return n, nil
}

// Close implements [io.Closer].
func (*joined) Close() error { return nil }
