// Package tests holds tests that concern several packages: the rules for imports between them
// and the promises of the documentation. It exports nothing, and nothing imports it. Its
// sub-packages hold what tests share.
package tests
