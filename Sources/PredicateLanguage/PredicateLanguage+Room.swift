// PredicateLanguage
