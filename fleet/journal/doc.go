// Package journal keeps what a job has done in a file that survives a crash at any
// instant.
//
// In this package: the [Journal] interface, the file format and its recovery, and the seam to the file
// system. Not here: any knowledge of tasks, attempts, or agents; package fleet says what the records
// mean. Package journaltest has the conformance suite for other implementations, and a file system that
// crashes.
//
// # Format
//
// journal.jsonl has one JSON object on each line, so that tail, grep and jq work. The
// first line is the [Header]. Every line begins with seq and ends with crc, the CRC-32C
// of the line without that member, as eight hexadecimal digits:
//
//	{"seq":0,"synced":-1,"at":"…","kind":"header","data":{"format":1,"job":"nightly",…},"crc":"5f0c1a2b"}
//	{"seq":1,"synced":0,"at":"…","kind":"starting","task":"a","attempt":1,"data":{…},"crc":"09d1e2f3"}
//
// synced is the last seq that was on the disk when the line was written. After a loss of
// power any part of what came later may be missing, which is legal: the journal is cut at
// the first line that is not whole. A broken line that a later line calls synced is
// damage, and an error with the number of the line.
package journal
