package web

import (
	"cmp"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/text/unicode/norm"

	"ferry/shared/bundle"
	"ferry/shared/wire"
)

const (
	// entriesPage is how many entries of a bundle a page shows, as many as one answer of the API holds.
	entriesPage = 1000
	// Folders are open on a page of at most openRows rows. A bundle of more than searchRows entries
	// can be searched.
	openRows, searchRows = 20, 50
	// maxDepth is how deep folders are nested on a page. Anything deeper has the rest of its path in its name.
	maxDepth = 12
	// A picture of at most maxPicture bytes is shown itself. A page lists at most maxPictures
	// pictures, shown or not.
	maxPicture, maxPictures = 4 << 20, 200
	maxWords                = 255 // of what is searched for, in bytes
)

// bundlePage is what a page shows of a bundle.
type bundlePage struct {
	Tree           []*node
	Open           bool   // the folders are open
	Whole          bool   // the page shows the whole bundle
	Files          int64  // on this page, or found
	Searches       bool   // there are enough entries for a search
	Search         string // what names must contain, or empty
	More           bool   // more names match than are shown
	Pictures       []picture
	Grid           pictures // those on this page
	ShowsPictures  bool     // instead of the tree
	Picture        *picture // the only one shown, or nil
	At             int      // its number
	From, To, All  int      // the entries on this page, if there are more
	Entries        int64    // of the bundle
	Start          string   // the index of the page's first entry, or empty
	Previous, Next string   // addresses of the neighbouring pages
}

// node is a file or a folder of a bundle.
type node struct {
	Name     string
	Length   int64 // of all files in a folder together
	Files    int64 // in the folder
	Download string
	Folder   bool
	Inside   []*node
}

// Within returns the contents of a folder, as part of a page whose folders are open or not.
func (n *node) Within(open bool) bundlePage { return bundlePage{Tree: n.Inside, Open: open} }

// Opens reports whether the folders of this part of the tree are open. A single folder always is.
func (b bundlePage) Opens() bool {
	folders := 0
	for _, n := range b.Tree {
		if n.Folder {
			folders++
		}
	}
	return b.Open || folders == 1
}

// picture is an image in a bundle. Preview is empty if the image is too large to be shown, or of a
// kind that browsers do not show.
type picture struct {
	Path, Preview, Download, Page string
	Length                        int64
}

// pictures is one page of a bundle's pictures.
type pictures struct {
	Shown                []picture
	From, To             int
	Page, Previous, Next string // addresses of this page and the ones before and after it; empty if there is none
}

// bundle returns what a page shows of a bundle.
func (v *visit) bundle(p landingPage, q url.Values) (*bundlePage, error) {
	all := p.About.Entries
	b := &bundlePage{
		All:      all,
		Entries:  int64(all),
		Searches: all > searchRows,
		Search:   strings.TrimSpace(bounded(q.Get("q"))),
	}
	from, _ := strconv.Atoi(q.Get("from"))
	from = max(0, min(from, bundle.MaxEntries)/entriesPage*entriesPage)
	if b.Search != "" {
		from = 0
	}
	b.Start = number(from)
	entries, more, err := v.entries(p, from, b.Search)
	b.More = more
	if err != nil {
		return nil, err
	}
	b.Whole = b.Search == "" && len(entries) == b.All
	if b.Search == "" && !b.Whole {
		b.From, b.To = from+1, from+len(entries)
		b.Previous, b.Next = p.part(from-entriesPage, b.All), p.part(from+entriesPage, b.All)
	}
	b.addPictures(p, entries, q)
	root := tree(p, entries, b.Search != "")
	b.Tree, b.Files = root.Inside, root.Files
	b.Open = len(entries) <= openRows
	view, mostly := q.Get("view"), 2*int64(len(b.Pictures)) > b.Files
	b.ShowsPictures = len(b.Pictures) > 0 && (view == "pictures" || mostly && view != "list")
	v.findStore(p.Query)
	return b, nil
}

// entries requests one page of a bundle's entries. With words, it returns the first entries whose
// paths contain them, and whether there are more of these.
func (v *visit) entries(
	p landingPage,
	from int,
	words string,
) (all []wire.Entry, more bool, err error) {
	for {
		var page wire.Entries
		found, err := v.ask(p.asked(fmt.Sprintf("&entries&after=%d", from)), &page)
		if err != nil || words == "" {
			return page.Entries, false, err
		}
		for _, e := range page.Entries {
			if !strings.Contains(fold(e.Path), fold(words)) || isFolder(e) {
				continue
			}
			if len(all) == entriesPage {
				return all, true, nil
			}
			all = append(all, e)
		}
		from += len(page.Entries)
		if found.header.Get("Link") == "" || len(page.Entries) == 0 {
			return all, false, nil
		}
	}
}

// fold returns a text for comparisons that ignore the case of letters.
func fold(text string) string { return strings.ToLower(norm.NFC.String(text)) }

func isFolder(e wire.Entry) bool { return strings.HasSuffix(e.Path, "/") }

// Page returns the address of this page with other values in its query. Empty values are left out.
func (p landingPage) Page(pairs ...string) string {
	return "l" + changed(p.Query, pairs...)
}

// part returns the address of the page that begins at an entry, or "" if there is none.
func (p landingPage) part(from, all int) string {
	if from < 0 || from >= all {
		return ""
	}
	return p.Page("from", strconv.Itoa(from))
}

func (p landingPage) entry(path string) string {
	return p.Link + "&entry=" + url.QueryEscape(path)
}

// addPictures adds the pictures, if at least one can be shown, and what the query asks for: one, or
// a page of them.
func (b *bundlePage) addPictures(p landingPage, entries []wire.Entry, q url.Values) {
	if p.guarded() {
		return
	}
	var all []picture
	some := false
	for _, e := range entries {
		if wire.FileKind(e.Path, "") != "image" {
			continue
		}
		one := picture{
			Path:     e.Path,
			Length:   e.Length,
			Download: p.entry(e.Path),
			Page: p.Page(
				"from",
				b.Start,
				"q",
				b.Search,
				"picture",
				strconv.Itoa(len(all)+1),
			),
		}
		if wire.PreviewKind(e.Path, "") == "image" && e.Length > 0 && e.Length <= maxPicture {
			one.Preview, some = one.Download+"&preview", true
		}
		all = append(all, one)
	}
	if !some {
		return
	}
	b.Pictures = all
	at, _ := strconv.Atoi(q.Get("at"))
	if n, _ := strconv.Atoi(q.Get("picture")); n >= 1 && n <= len(all) {
		at = n - 1 // the page of the grid that contains it
		b.Picture, b.At = &b.Pictures[n-1], n
		b.Previous, b.Next = "", ""
		if n > 1 {
			b.Previous = b.Pictures[n-2].Page
		}
		if n < len(b.Pictures) {
			b.Next = b.Pictures[n].Page
		}
	}
	at = max(0, min(at, len(all)-1)) / maxPictures * maxPictures
	to := min(at+maxPictures, len(all))
	page := func(at int) string {
		if at < 0 || at >= len(all) {
			return ""
		}
		return p.Page("view", "pictures", "q", b.Search, "from", b.Start, "at", number(at))
	}
	b.Grid = pictures{
		Shown:    all[at:to],
		From:     at + 1,
		To:       to,
		Page:     page(at),
		Previous: page(at - maxPictures),
		Next:     page(to),
	}
}

// tree returns the folder of all entries, in their folders or as a flat list.
func tree(p landingPage, entries []wire.Entry, flat bool) *node {
	root := &node{Folder: true}
	folders := map[string]*node{"": root}
	for _, e := range entries {
		dir, name := "", e.Path
		if !flat {
			dir, name = split(e.Path)
		}
		if isFolder(e) {
			if strings.Count(e.Path, "/") <= maxDepth {
				folder(folders, e.Path)
			}
			continue
		}
		in := folder(folders, dir)
		in.Inside = append(in.Inside, &node{
			Name:     plain(name),
			Length:   e.Length,
			Download: p.entry(e.Path),
		})
	}
	root.sum()
	return root
}

// split returns the folder that a file is shown in, with its slash, and the file's name there.
func split(path string) (dir, name string) {
	parts := strings.SplitAfter(path, "/")
	depth := min(len(parts)-1, maxDepth)
	return strings.Join(parts[:depth], ""), strings.Join(parts[depth:], "")
}

// folder returns the node of a folder, whose path ends in a slash.
func folder(all map[string]*node, path string) *node {
	if n := all[path]; n != nil {
		return n
	}
	dir, name := split(strings.TrimSuffix(path, "/"))
	in := folder(all, dir)
	n := &node{Name: plain(name), Folder: true}
	in.Inside = append(in.Inside, n)
	all[path] = n
	return n
}

// sum adds up what is in a folder, and sorts folders first.
func (n *node) sum() {
	for _, inside := range n.Inside {
		inside.sum()
		if !inside.Folder {
			n.Files++
		}
		n.Files += inside.Files
		n.Length += inside.Length
	}
	first := map[bool]int{true: 0, false: 1}
	slices.SortStableFunc(n.Inside, func(a, b *node) int {
		return cmp.Compare(first[a.Folder], first[b.Folder])
	})
}

// Name returns the picture's name, and Folder the folder that it is in.
func (p picture) Name() string { return plain(path.Base(p.Path)) }
func (p picture) Folder() string {
	return strings.TrimSuffix(plain(p.Path[:strings.LastIndexByte(p.Path, '/')+1]), "/")
}
