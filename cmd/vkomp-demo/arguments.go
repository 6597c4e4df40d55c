package main

import "strings"

// longFlags adds a dash to flags of several letters and to those with "=", as the parser requires
// them: -device 0 and --device 0 are the same, and so are -n 5 and -n=5. Arguments after "--" and
// negative numbers are unchanged.
func longFlags(args []string) []string {
	long := make([]string, len(args))
	for i, arg := range args {
		if arg == "--" {
			copy(long[i:], args[i:])
			break
		}
		long[i] = arg
		name, _, assigned := strings.Cut(strings.TrimPrefix(arg, "-"), "=")
		if strings.HasPrefix(arg, "-") && (len(name) > 1 || assigned && name != "") && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz") == "" {
			long[i] = "-" + arg
		}
	}
	return long
}
