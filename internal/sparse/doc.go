// Package sparse keeps structs without their zero fields, for what is kept in great
// numbers and mostly empty, as the options of a session are.
package sparse
