package parcel

import (
	"io/fs"
	"path"
	"path/filepath"
	"strings"
)

// allowed reports whether a file may have this name, with slashes and relative to the directory, on any system.
func allowed(name string) bool {
	return name != "." && fs.ValidPath(name) && filepath.IsLocal(filepath.FromSlash(name)) && !strings.ContainsAny(name, "\x00\\") && !ofGit(name)
}

// ofGit reports whether a part of a name is the directory of a repository. Some file systems ignore case,
// and points and spaces at the end, and Windows has a short name for it.
func ofGit(name string) bool {
	for part := range strings.SplitSeq(name, "/") {
		part, _, _ = strings.Cut(strings.ToLower(part), ":")
		if part = strings.TrimRight(strip(part), ". "); part == ".git" || part == "git~1" {
			return true
		}
	}
	return false
}

// strip leaves out the characters that HFS+ ignores in names.
func strip(part string) string {
	return strings.Map(func(r rune) rune {
		if r >= 0x200c && r <= 0x200f || r >= 0x202a && r <= 0x202e || r >= 0x206a && r <= 0x206f || r == 0xfeff {
			return -1
		}
		return r
	}, part)
}

// inside reports whether a link with this name and target leads to a place in the directory that files may
// be in. Each part of the way is in the directory too, if the other links are like this.
func inside(name, target string) bool {
	if target == "" || path.IsAbs(target) || filepath.IsAbs(target) || filepath.VolumeName(target) != "" || strings.ContainsAny(target, "\x00\\") || climbs(target) {
		return false
	}
	to := path.Join(path.Dir(name), target)
	return to == "." || allowed(to)
}

// climbs reports whether a target goes up after it has gone down. The part below could be a link, and
// then the text does not say where that leads.
func climbs(target string) bool {
	down := false
	for part := range strings.SplitSeq(target, "/") {
		if part == ".." && down {
			return true
		}
		down = down || part != ".." && part != "." && part != ""
	}
	return false
}
