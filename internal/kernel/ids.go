package kernel

import (
	"encoding/binary"
	"encoding/hex"
)

// NewUUID draws a version 4 UUID from r.
func NewUUID(r Rand) string {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], r.Uint64())
	binary.BigEndian.PutUint64(b[8:], r.Uint64())
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	var out [36]byte
	hex.Encode(out[0:8], b[0:4])
	out[8] = '-'
	hex.Encode(out[9:13], b[4:6])
	out[13] = '-'
	hex.Encode(out[14:18], b[6:8])
	out[18] = '-'
	hex.Encode(out[19:23], b[8:10])
	out[23] = '-'
	hex.Encode(out[24:36], b[10:16])
	return string(out[:])
}

// NewID draws a short lower-case identifier of 13 characters from r.
func NewID(r Rand) string {
	const digits = "0123456789abcdefghijklmnopqrstuvwxyz"
	n := r.Uint64()
	var out [13]byte
	for i := range out {
		out[i] = digits[n%36]
		n /= 36
	}
	return string(out[:])
}
