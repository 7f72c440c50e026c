from litebnn.cli import main

raise SystemExit(main())
