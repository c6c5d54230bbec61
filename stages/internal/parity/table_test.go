package parity

import (
	"encoding/csv"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// table has a row for each stage that computes on devices: the largest [stages.Deviation] from the processor
// of two images, on any port and net, measured on WebGPU; the net that has it; and the stage's tolerance.
const table = "../../../docs/devices.csv"

var header = []string{"stage", "deviation", "net", "tolerance"}

type row struct {
	stage     string
	deviation float64
	net       string
	tolerance float64
}

// writeTable writes what was measured, and of other stages that compute on devices the published rows.
func writeTable(t *testing.T, measured map[string]row) {
	t.Helper()
	published := readTable(t)
	rows := [][]string{header}
	for _, s := range deviceStages() {
		if r, ok := measured[s.Name]; ok {
			rows = append(rows, []string{r.stage, short(r.deviation), r.net, short(r.tolerance)})
		} else if r, ok := published[s.Name]; ok {
			rows = append(rows, r)
		}
	}
	f, err := os.Create(table)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := csv.NewWriter(f).WriteAll(rows); err != nil {
		t.Fatal(err)
	}
}

// short returns a number with two digits.
func short(x float64) string {
	text := strconv.FormatFloat(x, 'g', 2, 64)
	return strings.Replace(text, "e-0", "e-", 1)
}

// readRows returns the rows of a published table with these columns.
func readRows(t *testing.T, file string, columns []string) [][]string {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(rows[0], columns) {
		t.Fatalf("the columns are %q, not %q", rows[0], columns)
	}
	return rows[1:]
}

// readTable returns the rows of the table, by stage.
func readTable(t *testing.T) map[string][]string {
	t.Helper()
	published := map[string][]string{}
	for _, r := range readRows(t, table, header) {
		published[r[0]] = r
	}
	return published
}

// TestTable checks that the published table has every stage that computes on devices, with its tolerance, and
// that what was measured is within it.
func TestTable(t *testing.T) {
	published := readTable(t)
	for _, s := range deviceStages() {
		r, ok := published[s.Name]
		if !ok {
			t.Errorf("%s has no row: UPDATE=1 ONLY=%[1]s make test-gpu measures it", s.Name)
			continue
		}
		delete(published, s.Name)
		deviation, err := strconv.ParseFloat(r[1], 64)
		if err != nil {
			t.Errorf("%s: %v", s.Name, err)
		}
		if r[3] != short(s.Tolerance) || !(deviation <= s.Tolerance) {
			t.Errorf("%s: a deviation of %s and a tolerance of %s are published, %g is declared", s.Name,
				r[1], r[3], s.Tolerance)
		}
	}
	for name := range published {
		t.Errorf("%s computes on no device", name)
	}
}
