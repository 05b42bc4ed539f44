import type { RefObject } from "preact";
import { useLayoutEffect, useState } from "preact/hooks";

/** The current height of an element. @param initial until it is measured */
export function useHeight(box: RefObject<HTMLElement | null>, initial: number): number {
  const [height, setHeight] = useState(initial);
  useLayoutEffect(() => {
    const element = box.current!;
    const observer = new ResizeObserver(() => setHeight(element.clientHeight));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return height;
}
