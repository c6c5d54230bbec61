// Package classname finds classes by their names, which lists of classes write in several ways.
package classname

import (
	"slices"
	"strings"
)

// Is reports whether a name names a class: as the class's name, as its first word, since lists of class
// names often start each line with the name of the class's folder, or in a folder's spelling, apple_pie for
// Apple pie.
func Is(class, name string) bool {
	word, _, _ := strings.Cut(class, " ")
	spaced := func(s string) string { return strings.ReplaceAll(s, "_", " ") }
	return class == name || word == name || strings.EqualFold(spaced(class), spaced(name))
}

// Find returns the classes of a list that have a name: those with exactly this name, or else those for
// which it is one of the names that commas separate, as in "n01440764 tench, Tinca tinca", or a name that
// Is accepts.
func Find(classes []string, name string) (found []int) {
	for i, c := range classes {
		if c == name {
			found = append(found, i)
		}
	}
	if found != nil {
		return found
	}
	for i, c := range classes {
		if slices.ContainsFunc(append(synonyms(c), c), func(s string) bool { return Is(s, name) }) {
			found = append(found, i)
		}
	}
	return found
}

// synonyms returns the names of a class that commas separate, with and without the folder's name.
func synonyms(class string) (names []string) {
	_, words, _ := strings.Cut(class, " ")
	for _, s := range slices.Concat([]string{words}, strings.Split(class, ","), strings.Split(words, ",")) {
		if s = strings.TrimSpace(s); s != "" {
			names = append(names, s)
		}
	}
	return names
}

// Words returns all names of the classes of a list, by which Find finds them.
func Words(classes []string) (names []string) {
	for _, c := range classes {
		names = append(append(names, c), synonyms(c)...)
	}
	return names
}
