package output

import (
	"bytes"
	"fmt"
	"testing"

	"memtrace/internal/browser"
	"memtrace/tracer/recording"
)

// A user searches the sites, opens them, goes by keyboard, and changes the theme.
func TestPageInABrowser(t *testing.T) {
	browser.Drive(t, pageOf(t, wholeRecording(t)), 1280, `
		const sites = () => [...document.querySelectorAll('.site')].filter((site) => site.offsetParent !== null);
		const all = sites().length;
		check(all === 20, 'sites shown: ' + all);

		key('/');
		const search = document.getElementById('search');
		check(document.activeElement === search, '/ does not lead to the search');
		type(search, 'FETCH_page');
		check(sites().length === 1, 'search for fetch_page shows ' + sites().length);
		check(document.getElementById('found').textContent === '1 of 20', 'the search says ' + document.getElementById('found').textContent);
		check(document.querySelector('.site mark').textContent === 'fetch_page', 'the hit is not marked');
		type(search, 'scorer parse_field');
		check(sites().length >= 1 && sites().every((site) => site.textContent.includes('parse_field')), 'two words do not both count');
		type(search, 'nowhere to be found');
		check(sites().length === 0, 'a search for nothing shows sites');
		key('Escape', search);
		check(sites().length === all && !document.querySelector('mark'), 'Escape does not end the search');

		key('e');
		check(sites().every((site) => site.open), 'e does not open the sites');
		key('e');
		check(sites().every((site) => !site.open), 'e does not close the sites');

		const paper = () => getComputedStyle(document.body).backgroundColor;
		const button = document.getElementById('theme');
		const first = paper();
		button.click();
		check(document.documentElement.dataset.theme === 'light' && paper() === 'rgb(255, 255, 255)', 'light is ' + paper());
		key('t');
		check(document.documentElement.dataset.theme === 'dark' && paper() === 'rgb(20, 24, 31)', 'dark is ' + paper());
		button.click();
		check(!document.documentElement.dataset.theme && paper() === first, 'the third theme is not the system\'s');
		for (const link of document.querySelectorAll('nav a')) {
			check(document.querySelector(link.getAttribute('href')), 'a link leads nowhere: ' + link.href);
		}
	`)
}

// Nothing is wider than the window, on a desk and on a phone, whatever the names.
func TestPageFitsTheWindow(t *testing.T) {
	page := pageOf(t, largeRecording(t))
	for _, width := range []int{1280, 500} {
		browser.Drive(t, page, width, `
			for (const details of document.querySelectorAll('details')) details.open = true;
			check(document.documentElement.scrollWidth <= window.innerWidth + 1, 'the page is ' + document.documentElement.scrollWidth + ' wide in a window of ' + window.innerWidth);
			check(document.querySelectorAll('.site').length === 200, 'sites listed: ' + document.querySelectorAll('.site').length);
		`)
	}
}

// A user zooms into the flame graph, searches it, goes by arrows and looks at another measure.
func TestFlameGraphInABrowser(t *testing.T) {
	browser.Drive(t, pageOf(t, wholeRecording(t)), 1280, `
		const stage = document.getElementById('flame-stage');
		const detail = document.getElementById('flame-detail');
		const frame = (name) => [...stage.children].find((element) => element.node.name === name);
		const wide = (element) => element.getBoundingClientRect().width / stage.getBoundingClientRect().width;
		check(detail.textContent === 'all: 136 MiB, 100 %, 155,646 calls', 'the whole is ' + detail.textContent);
		check(Math.abs(wide(frame('fetch_page')) - 0.59) < 0.01, 'fetch_page is ' + wide(frame('fetch_page')) + ' wide');
		check([...stage.children].every((element) => element.getBoundingClientRect().right <= stage.getBoundingClientRect().right + 1), 'a frame leaves the picture');

		frame('fetch_page').dispatchEvent(new MouseEvent('mouseover', { bubbles: true }));
		check(detail.textContent === 'fetch_page (pollloop): 80.0 MiB, 59 %, 20,492 calls', 'hover says ' + detail.textContent);

		frame('scorer').click();
		check(wide(frame('scorer')) > 0.99 && !frame('fetch_page') && frame('clone3'), 'zoom does not show the frame, its callers and what it calls');
		check(document.activeElement === frame('scorer'), 'the zoomed frame has no focus');
		key('ArrowUp', document.activeElement);
		check(document.activeElement === frame('start_thread'), 'arrow up leads to ' + document.activeElement.textContent);
		key('ArrowDown', document.activeElement);
		check(document.activeElement === frame('scorer'), 'arrow down leads to ' + document.activeElement.textContent);
		key('Escape', document.activeElement);
		check(frame('fetch_page'), 'Escape does not show all again');

		type(document.getElementById('flame-search'), 'FETCH_');
		check(document.querySelectorAll('.frame.hit').length === 1 && frame('fetch_page').classList.contains('hit'), 'the search does not mark the frame');
		check(document.getElementById('flame-found').textContent === '59 % matches', 'the search finds ' + document.getElementById('flame-found').textContent);
		type(document.getElementById('flame-search'), '^(fetch_page|scorer) ');
		check(document.querySelectorAll('.frame.hit').length === 2, 'a regular expression marks ' + document.querySelectorAll('.frame.hit').length);
		type(document.getElementById('flame-search'), 'fetch_(');
		check(document.querySelectorAll('.frame.hit').length === 0, 'half an expression is not taken as it stands');
		key('Escape', document.getElementById('flame-search'));
		check(!stage.classList.contains('searching'), 'Escape does not end the search');
		key('f');
		check(document.activeElement === document.getElementById('flame-search'), 'f does not lead to the search');
		const legend = () => [...document.querySelectorAll('#flame-legend li')].map((item) => item.textContent).join();
		check(legend() === 'libc.so.6,pollloop,allocator', 'the legend says ' + legend());

		const choice = document.getElementById('flame-measure');
		check([...choice.options].map((option) => option.value).join() === 'alloc-bytes,alloc-count,live-bytes,lock-wait,arena-created', 'measures: ' + [...choice.options].map((option) => option.value));
		choice.value = 'lock-wait';
		choice.dispatchEvent(new Event('change'));
		check(frame('append_entry') && detail.textContent === 'all: 31.0 s, 100 %, 41,200 waits', 'lock-wait shows ' + detail.textContent);
	`)
}

// A frame of a comparison tells both weights; its colour tells which way they went.
func TestDifferentialFlameGraphInABrowser(t *testing.T) {
	c := sampleComparison(t)
	c.Stacks = nil
	for _, pair := range []recording.StackPair{{Before: 4 << 20}, {After: 2 << 20}, {Before: 1 << 20, After: 1 << 20}, {Before: 1 << 20, After: 1.5 * (1 << 20)}} {
		pair.Stack = recording.Stack{{Function: fmt.Sprint("site", len(c.Stacks))}, {Function: "main"}}
		c.Stacks = append(c.Stacks, pair)
	}
	var page bytes.Buffer
	if err := DiffHTML(&page, c, Options{}); err != nil {
		t.Fatal(err)
	}
	browser.Drive(t, page.String(), 1280, `
		const stage = document.getElementById('flame-stage');
		const frame = (name) => [...stage.children].find((element) => element.node.name === name);
		const wants = {
			main: '6.00 MiB/s → 4.50 MiB/s, -25 %', site0: '4.00 MiB/s → 0 B/s, only before', site1: '0 B/s → 2.00 MiB/s, only after',
			site2: '1.00 MiB/s → 1.00 MiB/s, +0.0 %', site3: '1.00 MiB/s → 1.50 MiB/s, +50 %',
		};
		for (const [name, want] of Object.entries(wants)) {
			frame(name).dispatchEvent(new MouseEvent('mouseover', { bubbles: true }));
			const said = document.getElementById('flame-detail').textContent;
			check(said === name + ': ' + want, said);
		}
		const colour = (name) => getComputedStyle(frame(name)).backgroundColor.match(/\d+/g).map(Number);
		const [[blueRed, , blueBlue], [redRed, , redBlue], grey, [paleRed, , paleBlue]] = ['site0', 'site1', 'site2', 'site3'].map(colour);
		check(blueBlue > blueRed + 80, 'what shrank is not blue');
		check(redRed > redBlue + 80, 'what grew is not red');
		check(Math.max(...grey) - Math.min(...grey) < 12, 'what stayed is not grey');
		check(paleRed > paleBlue && paleRed - paleBlue < redRed - redBlue, 'what grew a little is not pale red');
		const legend = [...document.querySelectorAll('#flame-legend li')].map((item) => item.textContent).join();
		check(legend === 'only before,shrank,stayed,grew,only after', 'the legend says ' + legend);
		frame('site3').click();
		check(!frame('site0'), 'zoom does not leave the others out');
	`)
}
