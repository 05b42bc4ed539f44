/** Dark or light: the system's setting until the user chooses. */
import { useEffect, useState } from "preact/hooks";

type Theme = "dark" | "light";
const key = "coxswain-theme";
const system = (): Theme => (matchMedia("(prefers-color-scheme: light)").matches ? "light" : "dark");

function chosen(): Theme | undefined {
  const value = localStorage.getItem(key);
  return value === "dark" || value === "light" ? value : undefined;
}

export function useTheme(): [Theme, () => void] {
  const [theme, setTheme] = useState<Theme>(() => chosen() ?? system());
  useEffect(() => {
    document.documentElement.dataset["theme"] = theme;
  }, [theme]);
  useEffect(() => {
    const media = matchMedia("(prefers-color-scheme: light)");
    const read = (): void => setTheme(chosen() ?? system());
    media.addEventListener("change", read);
    return () => media.removeEventListener("change", read);
  }, []);
  const toggle = (): void => {
    const next = theme === "dark" ? "light" : "dark";
    localStorage.setItem(key, next);
    setTheme(next);
  };
  return [theme, toggle];
}
