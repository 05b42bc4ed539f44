import { open, readdir, readlink } from "node:fs/promises";
import { join } from "node:path";
import type { TestContext } from "node:test";

/** Paths below `dir`, without symbolic links, that this process has open. */
export async function openFilesBelow(dir: string): Promise<string[]> {
  const descriptors = await readdir("/proc/self/fd");
  const paths = await Promise.all(descriptors.map((fd) => readlink(join("/proc/self/fd", fd)).catch(() => "")));
  return paths.filter((path) => path === dir || path.startsWith(`${dir}/`));
}

/** Makes `stat` of open files fail until the test ends, as on a network file system whose file is gone. */
export async function failingStat(t: TestContext): Promise<void> {
  const any = await open("/dev/null");
  const stale = (): Promise<never> => Promise.reject(Object.assign(new Error("ESTALE: stale file handle"), { code: "ESTALE" }));
  t.mock.method(Object.getPrototypeOf(any) as typeof any, "stat", stale);
  await any.close();
}
