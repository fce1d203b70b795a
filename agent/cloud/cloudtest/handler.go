package cloudtest

import (
	"errors"
	"io"
	"maps"
	"net/http"
)

// ServeHTTP implements http.Handler, for an address such as that of httptest.Server. A
// connection that [Fault] breaks is broken; NoConnection breaks it, too.
func (s *Server) ServeHTTP(out http.ResponseWriter, in *http.Request) {
	answer, err := s.RoundTrip(in)
	if err != nil {
		panic(http.ErrAbortHandler) // net/http breaks the connection
	}
	defer func() { _ = answer.Body.Close() }() // it was read
	maps.Copy(out.Header(), answer.Header)
	out.WriteHeader(answer.StatusCode)
	c := http.NewResponseController(out)
	buf := make([]byte, 4096)
	for {
		_ = c.Flush() // an error comes with the next write
		n, err := answer.Body.Read(buf)
		if _, failed := out.Write(buf[:n]); failed != nil || errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			panic(http.ErrAbortHandler)
		}
	}
}
