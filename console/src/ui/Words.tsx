// A sentence of the server's. Names in it that the answer has beside it keep their direction to themselves.
import { piecesOf } from "./bidi";
import { Name } from "./Name";

export function Words({
  of,
  names = [],
}: {
  of: string;
  names?: readonly (string | null | undefined)[];
}) {
  return (
    <span class="wrap">
      {piecesOf(of, names).map((each, at) =>
        each.isName ? <Name key={at} of={each.text} wraps /> : each.text,
      )}
    </span>
  );
}
