// Command sbom prints the software bill of materials of a Go program, as CycloneDX 1.6 in JSON:
// its modules, as the program itself names them, with their hashes in the form of go.sum.
//
//	go -C tools run ./sbom -version v0.1.0 -time 2026-11-27T14:27:09Z PROGRAM
//
// Equal programs have equal bills.
package main
