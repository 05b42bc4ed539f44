/** Removes trailing `*` characters in linear time. */
export function withoutStars(text: string): string {
  let end = text.length;
  while (end > 0 && text[end - 1] === "*") end--;
  return text.slice(0, end);
}
