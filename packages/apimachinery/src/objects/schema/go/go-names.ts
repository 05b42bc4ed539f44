import names from "./go-names.json" with { type: "json" };

/** Acronyms at the start of JSON names that Go writes in upper case. */
const { acronyms } = names;

/** Irregular names; qualified by the struct where other structs have the regular form. */
const irregular: Readonly<Record<string, string>> = names.irregular;

const beginsWithAcronym = new RegExp(`^(${acronyms.join("|")})(?=[A-Z]|s?$|s[A-Z]|Version)`);

/** `hostIP` → `HostIP`, `apiVersion` → `APIVersion`, `seLinuxOptions` → `SELinuxOptions`, `x-kubernetes-map-type` → `XMapType`. */
export function goFieldName(goStruct: string, name: string): string {
  const key = `${goStruct}.${name}`;
  if (Object.hasOwn(irregular, key)) return irregular[key]!;
  if (Object.hasOwn(irregular, name)) return irregular[name]!;
  if (name.startsWith("x-kubernetes-"))
    return `X${name.slice("x-kubernetes".length).replace(/-(.)/g, (_, first) => first.toUpperCase())}`;
  const [acronym] = beginsWithAcronym.exec(name) ?? [];
  if (acronym !== undefined) return acronym.toUpperCase() + name.slice(acronym.length);
  return name.charAt(0).toUpperCase() + name.slice(1);
}
