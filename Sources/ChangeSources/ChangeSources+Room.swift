// ChangeSources
