/** A real Chromium without a screen, and the page in it. */
import { existsSync } from "node:fs";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { type Browser, type BrowserContext, type BrowserContextOptions, chromium, type Page } from "playwright-core";

const programs = ["/usr/bin/chromium-headless-shell", "/usr/bin/chromium"];

/** @throws Error with the package that is missing */
export async function startBrowser(t: { after(fn: () => Promise<void>): void }): Promise<Browser> {
  const executablePath = programs.find((path) => existsSync(path));
  if (executablePath === undefined) throw new Error("Chromium is missing: apt-get install chromium-headless-shell");
  const args = [
    ...(process.getuid?.() === 0 ? ["--no-sandbox"] : []),
    "--disable-gpu",
    "--font-render-hinting=none",
    "--force-color-profile=srgb",
    "--js-flags=--expose-gc",
    "--enable-precise-memory-info",
  ];
  const browser = await chromium.launch({ executablePath, args });
  t.after(() => browser.close());
  return browser;
}

export interface PageOptions extends BrowserContextOptions {
  readonly url: string;
  /** undefined: no sign-in. */
  readonly token?: string;
  /** The page's time, which does not advance. */
  readonly nowMs?: number;
  /** `#/pods` */
  readonly hash?: string;
}

export interface OpenPage {
  readonly page: Page;
  readonly context: BrowserContext;
  /** What the page complained about: exceptions, errors in the console, requests to elsewhere. */
  readonly complaints: string[];
}

export async function openPage(browser: Browser, options: PageOptions): Promise<OpenPage> {
  const { url, token, nowMs, hash = "", ...more } = options;
  const context = await browser.newContext({
    ignoreHTTPSErrors: true,
    viewport: { width: 1440, height: 900 },
    locale: "en-GB",
    timezoneId: "UTC",
    colorScheme: "dark",
    reducedMotion: "reduce",
    ...more,
  });
  context.setDefaultTimeout(180_000); // other tests may load the machine
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on("pageerror", (err) => complaints.push(`exception: ${err.message}`));
  page.on("console", (message) => {
    // Chromium closes all connections when an interface is added or removed, as with each pod of this machine.
    const isExpected = /status of 40[134]|net::ERR_NETWORK_CHANGED/.test(message.text());
    if (message.type() === "error" && !isExpected) complaints.push(`console: ${message.text()}`);
  });
  page.on("request", (request) => {
    if (!request.url().startsWith(url)) complaints.push(`request to ${request.url()}`);
  });
  if (nowMs !== undefined) await page.clock.setFixedTime(nowMs);
  await load(() => page.goto(`${url}/ui/${hash}`));
  if (token !== undefined) await signIn(page, token);
  return { page, context, complaints };
}

/**
 * Repeats a navigation that a change of the machine's interfaces broke off. Chromium then shows an error page, which
 * breaks off the next navigation or reloads by itself.
 */
export async function load(navigate: () => Promise<unknown>): Promise<void> {
  const isNetworkChange = (err: unknown): boolean =>
    /net::ERR_NETWORK_CHANGED|chrome-error:|interrupted by another navigation/.test(String(err));
  const hasLoaded = (): Promise<boolean> => navigate().then(() => true);
  await waitFor(hasLoaded, { what: "the page", retry: isNetworkChange });
}

async function signIn(page: Page, token: string): Promise<void> {
  await page.getByLabel("Bearer token").fill(token);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.locator(".live.good").waitFor();
}
