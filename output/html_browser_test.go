package output

import (
	"testing"

	"memtrace/internal/browser"
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
