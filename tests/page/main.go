// Page tests report pages of vkomp in headless Chromium: each page is opened from disk and used
// as a person would. It fails on any console message, on any request other than for the page
// itself, and if the pictures are empty or do not react.
//
//	page [-chromium program] [-dark] [-shot picture.png] page.html
package main

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	program := flag.String("chromium", "chromium", "the browser")
	dark := flag.Bool("dark", false, "prefer dark colours")
	shot := flag.String("shot", "", "write a picture of the page")
	flag.Parse()
	if flag.NArg() != 1 {
		flag.Usage()
		os.Exit(2)
	}
	if err := look(*program, flag.Arg(0), *shot, *dark); err != nil {
		fmt.Fprintf(os.Stderr, "page: %s: %v\n", flag.Arg(0), err)
		os.Exit(1)
	}
	fmt.Printf("page: %s is as it should be\n", flag.Arg(0))
}

// width and height are the size of the window.
const width, height = 1400, 1000

func look(program, path, shot string, dark bool) (err error) {
	path, err = filepath.Abs(path)
	if err != nil {
		return err
	}
	b, err := startBrowser(program)
	if err != nil {
		// A browser that crashes before it gets the page, as Chromium does now and then, says nothing
		// of the page.
		var again error
		if b, again = startBrowser(program); again != nil {
			return errors.Join(err, again)
		}
	}
	defer func() { err = errors.Join(err, b.close()) }()
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	address := (&url.URL{Scheme: "file", Path: path}).String()
	for _, c := range []struct {
		method string
		params any
	}{
		{"Page.enable", nil}, {"Runtime.enable", nil}, {"Log.enable", nil}, {"Network.enable", nil},
		{"Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false}},
		{"Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": scheme}}}},
		{"Page.navigate", map[string]any{"url": address}},
	} {
		if err := b.call(c.method, c.params, nil); err != nil {
			return err
		}
	}
	if err := b.await("Page.loadEventFired"); err != nil {
		return err
	}
	errs := []error{checkPictures(b), checkTheme(b, scheme)}
	if shot != "" {
		errs = append(errs, b.screenshot(shot))
	}
	if errors.Join(errs...) == nil {
		errs = append(errs, checkPointing(b), checkZoom(b))
	}
	return errors.Join(append(errs, complaints(b, address))...)
}

// frame waits until everything requested is drawn.
const frame = `await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));`

// checkPictures checks the contents of both pictures. A page without a critical path has no tasks.
func checkPictures(b *browser) error {
	var seen struct {
		Steps    int
		Timeline struct{ Colours, Path int }
		Graph    struct{ Colours, Path int }
	}
	err := b.evaluate(`(async () => {`+frame+`
		const path = getComputedStyle(document.documentElement).getPropertyValue("--critical").trim();
		const [r, g, b] = [1, 3, 5].map(i => parseInt(path.slice(i, i + 2), 16));
		const look = id => {
			const c = document.getElementById(id), d = c.getContext("2d").getImageData(0, 0, c.width, c.height).data, colours = new Map();
			let path = 0;
			for (let i = 0; i < d.length; i += 4) {
				colours.set(d[i] << 16 | d[i + 1] << 8 | d[i + 2], true);
				if (Math.abs(d[i] - r) + Math.abs(d[i + 1] - g) + Math.abs(d[i + 2] - b) < 12) path++;
			}
			return { Colours: colours.size, Path: path };
		};
		return { Steps: document.querySelectorAll("#steps tbody tr").length, Timeline: look("timeline"), Graph: look("graph") };
	})()`, &seen)
	switch {
	case err != nil:
		return err
	case seen.Steps == 0:
		return errors.New("the table of the critical path has no steps")
	case seen.Timeline.Colours < 20 || seen.Timeline.Path < 20:
		return fmt.Errorf("the timeline has %d colours and %d points of the critical path", seen.Timeline.Colours, seen.Timeline.Path)
	case seen.Graph.Colours < 10 || seen.Graph.Path < 40:
		return fmt.Errorf("the graph has %d colours and %d points of the critical path", seen.Graph.Colours, seen.Graph.Path)
	}
	return nil
}

// checkTheme checks whether the page is light or dark as the browser requests.
func checkTheme(b *browser, scheme string) error {
	var red int
	if err := b.evaluate(`parseInt(getComputedStyle(document.body).backgroundColor.match(/\d+/)[0])`, &red); err != nil {
		return err
	}
	if (red < 128) != (scheme == "dark") {
		return fmt.Errorf("a %s page has a background of red %d", scheme, red)
	}
	return nil
}

// checkPointing moves the mouse over both pictures until a tooltip appears, and away from them.
func checkPointing(b *browser) error {
	for _, picture := range []string{"timeline", "graph"} {
		var box struct{ X, Y, Width, Height float64 }
		err := b.evaluate(`(() => { const c = document.getElementById("`+picture+`"); c.scrollIntoView({block: "start"}); return c.getBoundingClientRect().toJSON(); })()`, &box)
		if err != nil {
			return err
		}
		box.X, box.Y, box.Width, box.Height = box.X+200, box.Y+24, box.Width-210, min(box.Height, height-box.Y)-24
		tip := ""
		for step := 0; step < 4000 && tip == ""; step++ {
			// Points of a grid, widely spaced at first.
			x, y := box.X+float64(step*149%int(box.Width)), box.Y+float64(step*7%max(int(box.Height), 1))
			if err := b.mouse("mouseMoved", x, y, 0); err != nil {
				return err
			}
			if err := b.evaluate(`document.getElementById("tip").hidden ? "" : document.getElementById("tip").textContent`, &tip); err != nil {
				return err
			}
		}
		if tip == "" {
			return fmt.Errorf("the %s says nothing of what the mouse is on", picture)
		}
		if err := b.mouse("mouseMoved", 1, 1, 0); err != nil {
			return err
		}
		var hidden bool
		if err := b.evaluate(`document.getElementById("tip").hidden`, &hidden); err != nil || !hidden {
			return errors.Join(err, fmt.Errorf("the %s still says %q when the mouse is gone", picture, tip))
		}
	}
	return nil
}

// checkZoom turns the wheel over the timeline and presses a key.
func checkZoom(b *browser) error {
	span := func() (s float64, err error) {
		err = b.evaluate(`(async () => {`+frame+` const d = document.getElementById("timeline").dataset; return d.to - d.from; })()`, &s)
		return s, err
	}
	all, err := span()
	if err != nil {
		return err
	}
	var box struct{ X, Y, Width float64 }
	if err := b.evaluate(`(() => { const c = document.getElementById("timeline"); c.scrollIntoView(); c.focus(); return c.getBoundingClientRect().toJSON(); })()`, &box); err != nil {
		return err
	}
	if err := b.mouse("mouseWheel", box.X+box.Width/2, box.Y+60, -500); err != nil {
		return err
	}
	near, err := span()
	if err != nil {
		return err
	}
	for _, kind := range []string{"keyDown", "keyUp"} {
		if err := b.call("Input.dispatchKeyEvent", map[string]any{"type": kind, "key": "0", "text": "0"}, nil); err != nil {
			return err
		}
	}
	back, err := span()
	if err == nil && (near > all/2 || back != all) {
		err = fmt.Errorf("the timeline shows %v ns, %v with the wheel turned, %v back again", all, near, back)
	}
	return err
}

// complaints returns the console messages of the browser and the requests of the page.
func complaints(b *browser, address string) error {
	var errs []error
	for _, e := range b.events {
		var p struct {
			Type, URL        string
			Args             []struct{ Value, Description any }
			Entry            struct{ Level, Text, URL string }
			ExceptionDetails json.RawMessage
			Request          struct{ URL string }
		}
		if err := json.Unmarshal(e.Params, &p); err != nil {
			return err
		}
		switch e.Method {
		case "Runtime.exceptionThrown":
			errs = append(errs, fmt.Errorf("exception: %s", p.ExceptionDetails))
		case "Runtime.consoleAPICalled":
			errs = append(errs, fmt.Errorf("console: %s %v", p.Type, p.Args))
		case "Log.entryAdded":
			errs = append(errs, fmt.Errorf("log: %s %s %s", p.Entry.Level, p.Entry.Text, p.Entry.URL))
		case "Network.requestWillBeSent":
			if p.Request.URL != address && !strings.HasPrefix(p.Request.URL, "data:") {
				errs = append(errs, fmt.Errorf("the page asks for %s", p.Request.URL))
			}
		}
	}
	return errors.Join(errs...)
}

// screenshot writes a picture of the whole page.
func (b *browser) screenshot(path string) error {
	var metrics struct {
		Size struct{ Width, Height float64 } `json:"cssContentSize"`
	}
	if err := b.call("Page.getLayoutMetrics", nil, &metrics); err != nil {
		return err
	}
	clip := map[string]any{"x": 0, "y": 0, "width": metrics.Size.Width, "height": metrics.Size.Height, "scale": 1}
	var picture struct{ Data string }
	if err := b.call("Page.captureScreenshot", map[string]any{"captureBeyondViewport": true, "clip": clip}, &picture); err != nil {
		return err
	}
	png, err := base64.StdEncoding.DecodeString(picture.Data)
	if err != nil {
		return err
	}
	return os.WriteFile(path, png, 0o644)
}
