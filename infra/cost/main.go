// Command cost calculates what Ferry costs on AWS: each operation, 1,000 uploads, a GB,
// and an idle month. It multiplies what a test has counted (counts.json) by the
// prices in README.md, and rewrites the tables of that page. Nothing imports this
// package. Start reading with main; bill.go has the arithmetic.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// pageFile is the page, from the module's root.
const pageFile = "infra/cost/README.md"

func main() {
	page, err := newPage(".")
	if err == nil {
		err = os.WriteFile(pageFile, []byte(page), 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "cost:", err)
		os.Exit(1)
	}
}

// newPage returns the page of a module with new tables. The text between them is written
// by hand.
func newPage(root string) (string, error) {
	text, err := os.ReadFile(filepath.Join(root, pageFile))
	if err != nil {
		return "", fmt.Errorf("reading the page: %w", err)
	}
	b, err := newBook(root, string(text))
	if err != nil {
		return "", err
	}
	page := string(text)
	for name, rows := range map[string][][]string{
		"comparison": b.comparison(), "figures": b.figures(), "operations": b.operations(),
	} {
		before, rest, found := strings.Cut(page, "<!-- table "+name+" -->\n")
		_, after, ended := strings.Cut(rest, "<!-- end -->")
		if !found || !ended {
			return "", fmt.Errorf("%s has no place for table %s", pageFile, name)
		}
		table := ""
		for _, row := range slices.Insert(rows, 1, slices.Repeat([]string{"---"}, len(rows[0]))) {
			table += "| " + strings.Join(row, " | ") + " |\n"
		}
		page = before + "<!-- table " + name + " -->\n\n" + table + "\n<!-- end -->" + after
	}
	return page, nil
}

// run is what one function does for its events.
type run struct {
	Events int `json:"events"`
	// Own is how long they took without waiting for calls, in ms of a whole
	// CPU, including the SDK: measured once with stand-ins for AWS.
	Own    float64        `json:"ownMs"`
	Memory int            `json:"memoryMB"` // of the function
	Calls  map[string]int `json:"calls,omitempty"`
}

// count is what one operation does, with everything that it causes.
type count struct {
	Operation string             `json:"operation"`
	Runs      map[string]*run    `json:"runs"`             // by function
	Beside    map[string]int     `json:"beside,omitempty"` // calls by the caller or by AWS itself
	Units     map[string]float64 `json:"units"`
}

// book has what is needed to calculate a cost.
type book struct {
	rates  map[string]float64 // USD, by unit
	counts map[string]*count
	order  []*count
}

func newBook(root, page string) (*book, error) {
	b := &book{rates: map[string]float64{}, counts: map[string]*count{}}
	row := regexp.MustCompile(`(?m)^\| \[([^\]]+)\]\(https://aws\.amazon\.com/.+?\) \| ([\d.]+) \| ([\d,]+|GB) \|`)
	plain := strings.NewReplacer(",", "", "GB", fmt.Sprint(gb))
	for _, m := range row.FindAllStringSubmatch(page, -1) {
		var usd, per float64
		if _, err := fmt.Sscan(m[2]+" "+plain.Replace(m[3]), &usd, &per); err != nil {
			return nil, fmt.Errorf("the price of %s: %w", m[1], err)
		}
		b.rates[m[1]] = usd / per
	}
	text, err := os.ReadFile(filepath.Join(root, "infra/cost/counts.json"))
	if err == nil {
		err = json.Unmarshal(text, &b.order)
	}
	if err != nil {
		return nil, fmt.Errorf("reading what was counted: %w", err)
	}
	for _, c := range b.order {
		b.counts[c.Operation] = c
	}
	return b, nil
}
