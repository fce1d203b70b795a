// Package parcel packs files of a directory that an agent writes into a tar, and unpacks them on another machine.
//
// The content is data that an agent has written, so it decides nothing outside of the directory:
// names stay below it, no file is written through a link, a link leads to a place inside, and nothing
// is named .git, whose configuration and hooks name programs. Files have permissions and no other
// modes. The size of a parcel is bounded on both sides.
//
// In this package: the format, its limits, and walking a directory. Not in this package: which files
// belong into a parcel, repositories, sessions, and where a parcel is kept.
package parcel
