/** Which rows of a long list are in the document, and where keys lead in it. */

/** In pixels; `top` is the part above that is scrolled away. */
interface Viewport {
  readonly top: number;
  readonly height: number;
  readonly rowHeight: number;
}

/**
 * @param beyond rows above and below the visible ones
 * @returns indexes; `last` is excluded
 */
export function visibleRows(
  { top, height, rowHeight }: Viewport,
  count: number,
  beyond: number,
): { readonly first: number; readonly last: number } {
  return {
    first: Math.max(0, Math.floor(top / rowHeight) - beyond),
    last: Math.min(count, Math.ceil((top + height) / rowHeight) + beyond),
  };
}

/** @returns the index that a key leads to, within the list; undefined: the key does not move */
export function indexAfterKey(
  key: string,
  from: number,
  { count, page }: { readonly count: number; readonly page: number },
): number | undefined {
  const to = target(key, from, count, page);
  return to === undefined ? undefined : Math.max(0, Math.min(count - 1, to));
}

function target(key: string, from: number, count: number, page: number): number | undefined {
  switch (key) {
    case "ArrowDown":
    case "j":
      return from + 1;
    case "ArrowUp":
    case "k":
      return from - 1;
    case "PageDown":
      return from + page;
    case "PageUp":
      return from - page;
    case "Home":
      return 0;
    case "End":
      return count - 1;
    default:
      return undefined;
  }
}

/**
 * @param headHeight of what covers the upper end of the viewport
 * @returns the `top` at which the row is wholly visible; unchanged when it is
 */
export function topShowing(index: number, { top, height, rowHeight }: Viewport, headHeight: number): number {
  const end = (index + 1) * rowHeight + headHeight - height;
  return Math.max(Math.min(top, index * rowHeight), end);
}
