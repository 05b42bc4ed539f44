/** The parts of `registry.example:5000/team/app:1.2@sha256:…`; the default domain is `docker.io`. */
interface ImageReference {
  domain: string;
  path: string;
  tag?: string;
  digest?: string;
}

const pathPart = /^[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*$/;
const domainPattern = /^[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?(?::[0-9]+)?$|^\[[0-9a-fA-F:]+\](?::[0-9]+)?$/;
const tagPattern = /^\w[\w.-]{0,127}$/;
const digestPattern = /^[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}$/;
const maxNameLength = 255;

/** @returns undefined for an invalid reference. Source: docker's distribution/reference */
export function parseImageReference(text: string): ImageReference | undefined {
  if (text === "" || text.length > 1024) return undefined;
  const at = text.indexOf("@");
  const digest = at < 0 ? undefined : text.slice(at + 1);
  if (digest !== undefined && !digestPattern.test(digest)) return undefined;
  let name = at < 0 ? text : text.slice(0, at);
  let tag: string | undefined;
  const colon = name.lastIndexOf(":");
  if (colon > name.lastIndexOf("/")) {
    tag = name.slice(colon + 1);
    name = name.slice(0, colon);
    if (!tagPattern.test(tag)) return undefined;
  }
  const { domain, path } = splitDomain(name);
  if (!domainPattern.test(domain) || name.length > maxNameLength) return undefined;
  if (path === "" || !path.split("/").every((part) => pathPart.test(part))) return undefined;
  return { domain, path, ...(tag === undefined ? {} : { tag }), ...(digest === undefined ? {} : { digest }) };
}

/** The first part is a domain when it has a dot, a colon or an upper-case letter, or is `localhost`. */
function splitDomain(name: string): { domain: string; path: string } {
  const slash = name.indexOf("/");
  const first = slash < 0 ? "" : name.slice(0, slash);
  if (first === "" || !(/[.:]/.test(first) || first === "localhost" || first !== first.toLowerCase())) {
    return { domain: "docker.io", path: name.includes("/") ? name : `library/${name}` };
  }
  return { domain: first === "index.docker.io" ? "docker.io" : first, path: name.slice(slash + 1) };
}

/** Appends `:latest` to a reference without tag and digest; undefined for an invalid reference. */
export function withDefaultTag(image: string): string | undefined {
  const reference = parseImageReference(image);
  if (reference === undefined) return undefined;
  return reference.tag === undefined && reference.digest === undefined ? `${image}:latest` : image;
}
