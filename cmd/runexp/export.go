package main

import (
	"bufio"
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/runexp/runexp/pipeline/typeset"
	"github.com/runexp/runexp/stages"
)

// openOut creates a folder if it is missing, and opens it in such a way that no link in it leads out of it.
func openOut(p place, dir string) (to *os.Root, err error) {
	if err := p.realNamed(dir); err != nil {
		return nil, err
	}
	if err = os.MkdirAll(dir, 0o777); err == nil {
		to, err = os.OpenRoot(dir)
	}
	if err != nil {
		return nil, environment(err)
	}
	return to, nil
}

// exportPort writes a port's data to files in a folder, and returns their names.
func exportPort(to *os.Root, port *stages.Port, d stages.Data) ([]string, error) {
	if port.Type.Form == stages.FormTensor {
		return exportTensors(to, port.Name, d)
	}
	if port.Type.Items {
		return exportFiles(to, port.Name, d)
	}
	b, err := d.Load(0)
	if err != nil {
		return nil, err
	}
	if port.Type.Form == stages.FormTable {
		return exportTable(to, port.Name+".csv", b)
	}
	file := port.Name + "." + cmp.Or(d.Facts["ext"], "bin")
	return []string{file}, writeFile(to, file, func(w io.Writer) error {
		_, err := w.Write(b)
		return err
	})
}

// exportFiles writes each item to a file of its own in a folder, and the items' ids to a .csv.
func exportFiles(to *os.Root, base string, d stages.Data) ([]string, error) {
	if err := makeFolder(to, base); err != nil {
		return nil, err
	}
	names := []string{base + ".csv"}
	err := writeCSV(to, names[0], []string{"item", "origin"}, d.Items.Len(), func(i int) ([]string, error) {
		it, err := d.Items.At(i)
		return []string{typeset.Field(it.ID), typeset.Field(it.Origin)}, err
	})
	for i := 0; i < d.Items.Len() && err == nil; i++ {
		var b []byte
		if b, err = d.Load(i); err == nil {
			names = append(names, filepath.Join(base, fmt.Sprintf("%06d.%s", i, cmp.Or(d.Facts["ext"],
				"bin"))))
			err = writeFile(to, names[i+1], func(w io.Writer) error {
				_, err := w.Write(b)
				return err
			})
		}
	}
	return names, err
}

func makeFolder(to *os.Root, name string) error {
	if err := available(to, name, fs.ModeDir, "folder"); err != nil {
		return err
	}
	return to.MkdirAll(name, 0o777)
}

// exportTensors writes all items to one .npy, or each item to its own in a folder if their shapes differ. A
// .csv holds the items' ids, and the values of items that are numbers.
func exportTensors(to *os.Root, base string, d stages.Data) ([]string, error) {
	n := d.Items.Len()
	tensor := func(i int) (stages.Tensor, error) {
		b, err := d.Load(i)
		if err != nil {
			return stages.Tensor{}, err
		}
		return stages.DecodeTensor(b)
	}
	first, alike, values := stages.Tensor{DType: stages.F32}, true, make([]float64, 0, n)
	for i := range n {
		t, err := tensor(i)
		if err != nil {
			return nil, err
		}
		if i == 0 {
			first = t
		}
		alike = alike && t.DType == first.DType && slices.Equal(t.Shape, first.Shape)
		if t.Len() == 1 && len(values) == i {
			values = append(values, t.Float64s()[0])
		}
	}
	if !alike {
		if err := makeFolder(to, base); err != nil {
			return nil, err
		}
	}
	head := []string{"item", "origin", "value"}
	if len(values) < n {
		head = head[:2]
	}
	err := writeCSV(to, base+".csv", head, n, func(i int) ([]string, error) {
		it, err := d.Items.At(i)
		row := []string{typeset.Field(it.ID), typeset.Field(it.Origin)}
		if len(values) == n {
			row = append(row, numeral(values[i]))
		}
		return row, err
	})
	if err != nil {
		return nil, err
	}
	if alike {
		shape := append([]int{n}, first.Shape...)
		names := []string{base + ".npy", base + ".csv"}
		return names, writeNPY(to, names[0], first.DType, shape, 0, n, tensor)
	}
	names := []string{base + ".csv"}
	for i := range n {
		t, err := tensor(i)
		if err != nil {
			return nil, err
		}
		names = append(names, filepath.Join(base, fmt.Sprintf("%06d.npy", i)))
		if err := writeNPY(to, names[i+1], t.DType, t.Shape, i, i+1, tensor); err != nil {
			return nil, err
		}
	}
	return names, nil
}

// writeNPY concatenates some tensors to one array.
func writeNPY(to *os.Root, file string, dtype stages.DType, shape []int, from, end int,
	tensor func(int) (stages.Tensor, error)) error {
	return writeFile(to, file, func(w io.Writer) error {
		_, err := w.Write(stages.NPYHeader(dtype, shape...))
		for i := from; i < end && err == nil; i++ {
			var t stages.Tensor
			if t, err = tensor(i); err == nil {
				_, err = w.Write(t.Raw)
			}
		}
		return err
	})
}

func exportTable(to *os.Root, file string, b []byte) ([]string, error) {
	t, err := stages.DecodeTable(b)
	if err != nil {
		return nil, err
	}
	return []string{file}, writeFile(to, file, func(w io.Writer) error {
		_, err := io.WriteString(w, tableCSV(t))
		return err
	})
}

func writeCSV(to *os.Root, file string, head []string, n int, row func(i int) ([]string, error)) error {
	return writeFile(to, file, func(w io.Writer) error {
		c := csv.NewWriter(w)
		c.Write(head)
		for i := range n {
			fields, err := row(i)
			if err != nil {
				return err
			}
			c.Write(fields)
		}
		c.Flush()
		return c.Error()
	})
}

// numeral writes a number with all its digits, and an undefined one as nothing.
func numeral(x float64) string {
	if math.IsNaN(x) {
		return ""
	}
	return strconv.FormatFloat(x, 'g', -1, 64)
}

// available returns an error if the place of a file or folder holds something else: a link is neither
// followed nor replaced.
func available(to *os.Root, name string, t fs.FileMode, expected string) error {
	info, err := to.Lstat(name)
	if err != nil || info.Mode().Type() == t {
		return nil // it doesn't exist, or opening it fails too
	}
	return fmt.Errorf("%s is %s, not a %s: remove it, or name another -o", filepath.Join(to.Name(), name),
		stages.Kind(info.Mode()), expected)
}

// writeFile creates or replaces a file.
func writeFile(to *os.Root, file string, write func(io.Writer) error) error {
	if err := available(to, file, 0, "regular file"); err != nil {
		return err
	}
	temp := filepath.Join(filepath.Dir(file), fmt.Sprintf(".get-%016x", rand.Uint64()))
	f, err := to.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, 1<<20)
	if err = write(w); err == nil {
		err = w.Flush()
	}
	if err = cmp.Or(err, f.Close()); err == nil {
		err = to.Rename(temp, file)
	}
	if err != nil {
		to.Remove(temp)
	}
	return err
}
