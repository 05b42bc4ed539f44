import { dirname, join, normalize } from "node:path";
import { apimachineryRooms, apiserverRooms, daemons, type Room } from "./rules.ts";

/** One source file: its path from the repository's root and what it imports. */
export interface SourceFile {
  readonly path: string;
  readonly imports: readonly string[];
}

/** The module names of all static and dynamic imports and re-exports. */
export function importsOf(text: string): string[] {
  const pattern = /(?:^|[\n;])\s*(?:import|export)\s(?:[^;"']*?\sfrom\s)?\s*["']([^"']+)["']|\bimport\(\s*["']([^"']+)["']\s*\)/g;
  return [...text.matchAll(pattern)].map((match) => (match[1] ?? match[2]) as string);
}

/** @returns one line for each import that points the wrong way; empty when all is well. */
export function check(files: readonly SourceFile[]): string[] {
  return files.flatMap((file) => file.imports.flatMap((target) => problem(file.path, target) ?? []));
}

function problem(file: string, target: string): string | undefined {
  const match = /^packages\/([^/]+)\/src\/(.+)$/.exec(file);
  if (match === null) return undefined;
  const [, own = "", path = ""] = match;
  const foreign = /^@coxswain\/([^/]+)/.exec(target)?.[1];
  if (foreign !== undefined) {
    const allowed = daemons.includes(own) && foreign === "apimachinery";
    return allowed
      ? undefined
      : `${file}: ${own} may import ${own === "apimachinery" ? "no other package" : "only apimachinery"}, not ${target}`;
  }
  if (!target.startsWith(".") || isTest(path)) return undefined;
  const resolved = normalize(join(dirname(path), target));
  if (resolved.startsWith("..")) return `${file}: ${target} leaves the package; import it by its name`;
  if (isTest(resolved)) return `${file}: ${target} is a test`;
  if (own === "apimachinery") return apimachineryProblem(file, path, resolved);
  if (own === "apiserver") return roomProblem(file, path, resolved, apiserverRooms);
  return undefined;
}

const isTest = (path: string): boolean => /\.test\.ts$|(?:^|\/)(?:suite|testing)\.ts$/.test(path);

function apimachineryProblem(file: string, path: string, resolved: string): string | undefined {
  const own = path.split("/")[0] as string;
  const other = resolved.split("/")[0] as string;
  const rank = apimachineryRooms.indexOf(own);
  const otherRank = apimachineryRooms.indexOf(other);
  if (rank < 0) return `${file}: ${own} is no room of apimachinery; rooms: ${apimachineryRooms.join(", ")}`;
  if (otherRank >= 0 && otherRank <= rank) return undefined;
  return `${file}: ${own} may import ${apimachineryRooms.slice(0, rank).join(", ") || "no other room"}, not ${resolved}`;
}

function roomProblem(file: string, path: string, resolved: string, rooms: readonly Room[]): string | undefined {
  const room = rooms.filter((candidate) => isBelow(path, candidate.path)).sort((a, b) => b.path.length - a.path.length)[0];
  if (room === undefined) return `${file}: belongs to no room; rooms: ${rooms.map((candidate) => candidate.path).join(", ")}`;
  if (room.imports.includes("*") || isBelow(resolved, room.path) || room.imports.some((allowed) => isBelow(resolved, allowed)))
    return undefined;
  return `${file}: ${room.path} may import ${room.imports.join(", ") || "no other room"}, not ${resolved}`;
}

const isBelow = (path: string, room: string): boolean => path === room || path.startsWith(`${room}/`);
