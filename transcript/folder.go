package transcript

import (
	"path/filepath"
	"strconv"
	"strings"
	"unicode/utf16"
)

// Vendor is the agent whose sessions are read. The zero value is not valid.
type Vendor string

// The vendors.
const (
	Claude Vendor = "claude" // Claude Code
	Qoder  Vendor = "qoder"  // qodercli
)

// maxFolder is the longest folder name, in UTF-16 code units, that has no hash.
const maxFolder = 200

// FolderName returns the name of the folder, below projects/ in the agent's
// configuration directory, for sessions in the directory dir. dir must be absolute with
// its symbolic links resolved, as the agents do it; [Sessions] does this. FolderName
// removes "..", "." and slashes at the end.
//
// Each UTF-16 code unit other than A-Z, a-z and 0-9 becomes "-". A name longer than 200
// units is cut and followed by a hash of dir, which differs between the vendors. Two
// directories can have the same name.
func FolderName(v Vendor, dir string) string {
	dir = filepath.ToSlash(filepath.Clean(dir))
	units := utf16.Encode([]rune(dir))
	var b strings.Builder
	b.Grow(len(units))
	for i, u := range units {
		if i == maxFolder {
			b.WriteByte('-')
			b.WriteString(strconv.FormatInt(folderHash(v, units), 36))
			break
		}
		if u < 0x80 && (u >= '0' && u <= '9' || u >= 'A' && u <= 'Z' || u >= 'a' && u <= 'z') {
			b.WriteByte(byte(u))
		} else {
			b.WriteByte('-')
		}
	}
	return b.String()
}

// folderHash is the absolute value of a 32-bit hash over the units of the path.
func folderHash(v Vendor, units []uint16) int64 {
	var h int32
	if v == Qoder {
		h = 5381
		for _, u := range units {
			h = h*33 ^ int32(u)
		}
	} else {
		for _, u := range units {
			h = h*31 + int32(u)
		}
	}
	if h < 0 {
		return -int64(h)
	}
	return int64(h)
}
