/** Compares a picture with the one that is kept beside the tests, in the browser, which can read both. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Page } from "playwright-core";

/** The pictures of the documents are the golden ones, so that they show what the page looks like. */
const folder = join(import.meta.dirname, "..", "..", "docs", "guide", "ui");
const failures = join(import.meta.dirname, "..", "..", ".cox", "ui-screenshots");

/** Of all pixels: other versions of the font renderer draw edges a little differently. */
const tolerated = 0.01;

/**
 * @param blank any page: it draws both pictures
 * @throws Error when more than one in a hundred pixels is different; the new picture is in .cox/ui-screenshots then.
 * COX_UPDATE_SCREENSHOTS=1 keeps the new one instead.
 */
export async function assertLooksAs(name: string, picture: Buffer, blank: Page): Promise<void> {
  const file = join(folder, `${name}.png`);
  if (process.env["COX_UPDATE_SCREENSHOTS"] !== undefined) {
    mkdirSync(folder, { recursive: true });
    writeFileSync(file, picture);
    return;
  }
  const different = existsSync(file) ? await differenceOf(blank, readFileSync(file), picture) : 1;
  if (different <= tolerated) return;
  const kept = join(failures, `${name}.png`);
  mkdirSync(dirname(kept), { recursive: true });
  writeFileSync(kept, picture);
  const share = `${(different * 100).toFixed(2)} % of its pixels`;
  throw new Error(
    `${name} does not look as docs/guide/ui/${name}.png: ${share}; see ${kept}, COX_UPDATE_SCREENSHOTS=1 accepts it`,
  );
}

/** @returns the share of pixels that differ by more than a shade; 1 for another size */
function differenceOf(page: Page, golden: Buffer, found: Buffer): Promise<number> {
  const script = `async ([a, b]) => {
    const pixels = async (png) => {
      const bytes = Uint8Array.from(atob(png), (char) => char.charCodeAt(0));
      const image = await createImageBitmap(new Blob([bytes], { type: "image/png" }));
      const canvas = new OffscreenCanvas(image.width, image.height);
      const context = canvas.getContext("2d");
      context.drawImage(image, 0, 0);
      return context.getImageData(0, 0, image.width, image.height);
    };
    const [one, other] = await Promise.all([pixels(a), pixels(b)]);
    if (one.width !== other.width || one.height !== other.height) return 1;
    let different = 0;
    for (let i = 0; i < one.data.length; i += 4) {
      const most = Math.max(...[0, 1, 2].map((c) => Math.abs(one.data[i + c] - other.data[i + c])));
      if (most > 40) different++;
    }
    return different / (one.data.length / 4);
  }`;
  const pictures = JSON.stringify([golden.toString("base64"), found.toString("base64")]);
  return page.evaluate(`(${script})(${pictures})`);
}
