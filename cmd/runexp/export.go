package main

import (
	"bufio"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/runexp/runexp/pipeline/publish"
	"github.com/runexp/runexp/stages"
)

// openOut makes a folder where it's missing, and opens it so that no link in it leads
// out of it.
func openOut(p place, dir string) (*os.Root, error) {
	if err := p.realNamed(dir); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, environment(err)
	}
	to, err := os.OpenRoot(dir)
	if err != nil {
		return nil, environment(err)
	}
	return to, nil
}

// exportPort writes what a port holds to files in a folder, and returns their names.
func exportPort(to *os.Root, port *stages.Port, d stages.Data) ([]string, error) {
	base := port.Name
	switch port.Type.Form {
	case stages.FormTensor:
		return exportTensors(to, base, d)
	case stages.FormTable:
		return exportTable(to, base+".csv", d)
	}
	file := base + "." + cmp.Or(d.Facts["ext"], "bin")
	b, err := d.Load(0)
	if err != nil {
		return nil, err
	}
	return []string{file}, writeFile(to, file, func(w io.Writer) error {
		_, err := w.Write(b)
		return err
	})
}

// exportTensors writes one .npy with all items, or one an item in a folder when
// their shapes differ, and a .csv that says which is which.
func exportTensors(to *os.Root, base string, d stages.Data) ([]string, error) {
	tensor := func(i int) (stages.Tensor, error) {
		b, err := d.Load(i)
		if err != nil {
			return stages.Tensor{}, err
		}
		return stages.DecodeTensor(b)
	}
	var first stages.Tensor
	alike, single := true, true
	values := make([]float64, d.Items.Len())
	for i := range d.Items.Len() {
		t, err := tensor(i)
		if err != nil {
			return nil, err
		}
		if i == 0 {
			first = t
		}
		alike = alike && t.DType == first.DType && slices.Equal(t.Shape, first.Shape)
		if single = single && t.Len() == 1; single {
			values[i] = t.Float64s()[0]
		}
	}
	if !single {
		values = nil
	}
	names := []string{base + ".npy", base + ".csv"}
	if !alike {
		names = []string{base + ".csv"}
		if err := realFolder(to, base); err != nil {
			return nil, err
		}
	}
	if err := exportItems(to, base+".csv", d.Items, values); err != nil {
		return nil, err
	}
	if alike {
		shape := append([]int{d.Items.Len()}, first.Shape...)
		return names, writeFile(to, base+".npy", func(w io.Writer) error {
			return npy(w, cmp.Or(first.DType, stages.F32), shape, d.Items.Len(), tensor)
		})
	}
	for i := range d.Items.Len() {
		t, err := tensor(i)
		if err != nil {
			return nil, err
		}
		file := filepath.Join(base, fmt.Sprintf("%06d.npy", i))
		err = writeFile(to, file, func(w io.Writer) error {
			return npy(w, t.DType, t.Shape, 1, func(int) (stages.Tensor, error) { return t, nil })
		})
		if err != nil {
			return nil, err
		}
		names = append(names, file)
	}
	return names, nil
}

// npy writes n tensors one after another as one array.
func npy(w io.Writer, dtype stages.DType, shape []int, n int, tensor func(int) (stages.Tensor, error)) error {
	if _, err := w.Write(stages.NPYHeader(dtype, shape...)); err != nil {
		return err
	}
	for i := range n {
		t, err := tensor(i)
		if err != nil {
			return err
		}
		if _, err := w.Write(t.Raw); err != nil {
			return err
		}
	}
	return nil
}

// exportItems writes the items' ids, and their values where they are numbers.
func exportItems(to *os.Root, file string, items stages.Items, values []float64) error {
	return writeFile(to, file, func(w io.Writer) error {
		c := csv.NewWriter(w)
		head := []string{"item", "origin"}
		if values != nil {
			head = append(head, "value")
		}
		c.Write(head)
		for i := range items.Len() {
			it, err := items.At(i)
			if err != nil {
				return err
			}
			row := []string{publish.Field(it.ID), publish.Field(it.Origin)}
			if values != nil {
				row = append(row, numeral(values[i]))
			}
			c.Write(row)
		}
		c.Flush()
		return c.Error()
	})
}

func exportTable(to *os.Root, file string, d stages.Data) ([]string, error) {
	b, err := d.Load(0)
	if err != nil {
		return nil, err
	}
	t, err := stages.DecodeTable(b)
	if err != nil {
		return nil, err
	}
	return []string{file}, writeFile(to, file, func(w io.Writer) error {
		c := csv.NewWriter(w)
		head := slices.Clone(t.Keys)
		for _, n := range t.Numbers {
			head = append(head, n.Name)
		}
		c.Write(head)
		for _, r := range t.Rows {
			var row []string
			for _, key := range r.Keys {
				row = append(row, publish.Field(key))
			}
			for _, n := range r.Numbers {
				row = append(row, numeral(float64(n)))
			}
			c.Write(row)
		}
		c.Flush()
		return c.Error()
	})
}

// numeral writes a number so that reading gives the same one, and nothing for an
// undefined one.
func numeral(x float64) string {
	if math.IsNaN(x) {
		return ""
	}
	return strconv.FormatFloat(x, 'g', -1, 64)
}

// realFolder makes a folder below to; what stands there must be one, not a link.
func realFolder(to *os.Root, name string) error {
	info, err := to.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return to.Mkdir(name, 0o777)
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%s is %s, not a folder: remove it, or name another -o", filepath.Join(to.Name(), name), stages.Kind(info.Mode()))
	}
	return nil
}

// writeFile replaces a file, or makes it. What stands there must be a regular one: a
// link is neither followed nor replaced.
func writeFile(to *os.Root, file string, write func(io.Writer) error) error {
	if info, err := to.Lstat(file); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("%s is %s, not a regular file: remove it, or name another -o", filepath.Join(to.Name(), file), stages.Kind(info.Mode()))
	}
	temp := filepath.Join(filepath.Dir(file), fmt.Sprintf(".get-%016x", rand.Uint64()))
	f, err := to.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, 1<<20)
	err = write(w)
	if err == nil {
		err = w.Flush()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = to.Rename(temp, file)
	}
	if err != nil {
		to.Remove(temp)
	}
	return err
}
