// Package tests holds what no single room can test about itself: the rules
// between the rooms and the promises of the documentation. It exports nothing and
// nothing imports it; the folders below it hold what other tests share.
package tests
