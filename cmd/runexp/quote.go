package main

import "strings"

const plainLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%"

// quote writes an argument as a shell takes it.
func quote(arg string) string {
	if arg != "" && strings.Trim(arg, plainLetters) == "" {
		return arg
	}
	return "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
}
