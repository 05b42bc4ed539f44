import { posix } from "node:path";

const link = /\[((?:[^[\]]|\[[^\]]*\])*)\]\(([^()\s]+)\)/g;
const isOutside = (target: string): boolean => /^[a-z]+:/i.test(target) || target.startsWith("#");

/** Targets of a Markdown document's links to other files, from the archive's root; without those to the web or within the document. */
export function linkedFiles(markdown: string, path: string): string[] {
  return [...markdown.matchAll(link)].flatMap(([, , target = ""]) => (isOutside(target) ? [] : resolved(target, path)));
}

/** The document with the text alone of each link that leads to a file which is not there. */
export function withoutDeadLinks(markdown: string, path: string, isThere: (path: string) => boolean): string {
  return markdown.replaceAll(link, (whole, text: string, target: string) =>
    isOutside(target) || isThere(resolved(target, path)) ? whole : text,
  );
}

const resolved = (target: string, path: string): string =>
  posix.join(posix.dirname(path), target.replace(/#.*$/, "")).replace(/\/$/, "");
