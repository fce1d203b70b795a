package machine

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/agent-troupe/troupe/protocol"
)

// Identity says which request of the agent a frame is: a hash of its id, as the
// agent wrote it, and of what it asks. An id alone does not: agents have used one
// twice. It depends on the frame alone.
type Identity [16]byte

// IdentityOf returns the identity of a control request.
func IdentityOf(f *protocol.Frame) (who Identity) {
	body := []byte(f.Body())
	if body == nil {
		body = f.Raw // a head, or no request
	}
	h := sha256.New()
	var size [4]byte
	for _, part := range [...]string{string(f.ID), f.Subtype} {
		binary.LittleEndian.PutUint32(size[:], uint32(len(part)))
		h.Write(size[:])
		h.Write([]byte(part))
	}
	h.Write(body)
	var sum [sha256.Size]byte
	copy(who[:], h.Sum(sum[:0]))
	return who
}
