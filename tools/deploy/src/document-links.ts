import { posix } from "node:path";

const link = /\[((?:[^[\]]|\[[^\]]*\])*)\]\(([^()\s]+)\)/g;
const isOutside = (target: string): boolean => /^[a-z]+:/i.test(target) || target.startsWith("#");

/** Link targets of a Markdown document within the archive, relative to its root. */
export function linkedFiles(markdown: string, path: string): string[] {
  return [...markdown.matchAll(link)].flatMap(([, , target = ""]) => (isOutside(target) ? [] : resolved(target, path)));
}

/** Replaces links to missing files by their text. */
export function withoutDeadLinks(markdown: string, path: string, isThere: (path: string) => boolean): string {
  return markdown.replaceAll(link, (whole, text: string, target: string) =>
    isOutside(target) || isThere(resolved(target, path)) ? whole : text,
  );
}

const resolved = (target: string, path: string): string =>
  posix.join(posix.dirname(path), target.replace(/#.*$/, "")).replace(/\/$/, "");
