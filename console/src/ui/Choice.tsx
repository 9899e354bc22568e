interface ChoiceProps<T extends string> {
  label: string;
  of: readonly T[];
  value: T;
  onChange: (value: T) => void;
  words?: (value: T) => string;
}

/** One of a few, with its label. */
export function Choice<T extends string>({ label, of, value, onChange, words }: ChoiceProps<T>) {
  return (
    <label>
      {label}
      <select value={value} onChange={(event) => onChange(event.currentTarget.value as T)}>
        {of.map((each) => (
          <option key={each} value={each}>
            {words ? words(each) : each}
          </option>
        ))}
      </select>
    </label>
  );
}
