package english

import "testing"

func TestEnglish(t *testing.T) {
	for have, want := range map[string]string{
		Count(0, "file"):               "0 files",
		Count(1, "file"):               "1 file",
		Are(1) + " " + Are(2):          "is are",
		And(nil):                       "",
		And([]string{"a"}):             "a",
		And([]string{"a", "b"}):        "a and b",
		Or([]string{"a", "b", "c"}):    "a, b or c",
		Upper("distance in percent"):   "Distance in percent",
		Upper("κ of two") + Upper("A"): "Κ of twoA",
	} {
		if have != want {
			t.Errorf("%q, not %q", have, want)
		}
	}
}
